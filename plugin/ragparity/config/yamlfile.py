"""An eval file as plain data: YAML or JSON, variables, `file://` texts, `base:` files and overrides.

The toolkit's rules, with these differences, each of which turns a silent surprise into a line or a value:

- the toolkit puts the values of variables into the text before it reads YAML; here the text is read first,
  so a value with `#`, `:` or a quote in it stays whole, and a key made of digits stays text;
- an unset variable without a default stays as `${NAME}` (`Unset`), so that it can be named where it is used,
  instead of becoming an empty text;
- a date is text, a key that stands twice is an error.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Self

import yaml

from ragparity.config.masking import is_secret_name
from ragparity.config.problems import Problems, Where, dotted, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

TEXT_FILES = (".txt", ".md", ".j2", ".jinja2", ".jinja", ".prompt", ".tpl", ".template")
"""Endings that `file://` may have, as in the toolkit: texts, never code or data."""

_FILE = "file://"
_START = re.compile(r"(\\*)\$\{")
_NAME = re.compile(r"([A-Za-z_]\w*)(?::?-(.*))?", re.DOTALL)
_HELD = re.compile("\ue000(\\d+)\ue001")
_TEXT_KEYS = frozenset(
    {
        "model_name",
        "model",
        "azure_deployment",
        "base_url",
        "api_base",
        "azure_endpoint",
        "api_version",
        "file_path",
        "dir",
        "output_dir",
    }
)
"""Settings that are texts whatever a variable holds: a model called `4` is no number."""


class Unset(str):
    """A text in which `${NAME}` stands for a variable that is not set."""

    __slots__ = ("names",)
    names: tuple[str, ...]

    def __new__(cls, text: str, names: Sequence[str] = ()) -> Self:
        """The text as it stands in the file, and the names that are not set."""
        made = super().__new__(cls, text)
        made.names = tuple(dict.fromkeys(names))
        return made


class _Held(str):
    """An unquoted YAML scalar that holds a variable, so that its type depends on the value."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class _Value:
    text: str
    unset: tuple[str, ...] = ()
    quoted: bool = False


@dataclass(slots=True)
class Reader:
    """Reads one eval file with its bases. `problems` and `secrets` grow as it reads."""

    problems: Problems
    secrets: set[str] = field(default_factory=set)

    def file(self, path: Path, above: tuple[Path, ...] = ()) -> dict[str, Any]:
        """The mapping in this file, merged over that of its `base:`. Empty where it cannot be read."""
        path = path.resolve()
        if path in above:
            chain = " -> ".join(one.name for one in (*above[above.index(path) :], path))
            self.problems.add_line(f"base: the files name each other in a circle: {chain}; remove one `base:`")
            return {}
        text = self._text(path, f"the eval file {path}" if not above else f"base: the file {path}")
        if text is None:
            return {}
        tree = self.parse(text, path.name, is_json=path.suffix.lower() == ".json")
        if tree is None:
            tree = {}
        if not isinstance(tree, dict):
            self.problems.add_line(f"{path.name}: got {shown(tree)}; expected a mapping with `eval:` in it")
            return {}
        tree = self._texts_from_files(tree, (), path.parent)
        base = tree.pop("base", None)
        if base is None:
            return tree
        if not isinstance(base, str):
            self.problems.add(("base",), f"got {shown(base)}; expected the path of a file")
            return tree
        return merged(self.file(path.parent / base, (*above, path)), tree)

    def parse(self, text: str, name: str, where: Where = (), *, is_json: bool = False) -> Any:
        """The data in a text, variables filled in; `None` with a problem noted where it is malformed."""
        held: list[_Value] = []
        text = self._hold(text, held)
        raw = self._json(text, name) if is_json else self._yaml(text, name)
        return self._fill(raw, where, held, [])

    def override(self, tree: dict[str, Any], key: str, value: str, folder: Path) -> dict[str, Any]:
        """The tree with one setting from the command line; the value is read as YAML."""
        where = tuple(key.split("."))
        if not all(where):
            self.problems.add_line(f"--override {key}: got an empty part; expected keys with dots between them")
            return tree
        before = len(self.problems.found)
        parsed = self.parse(value, f"--override {key}", where)
        if len(self.problems.found) > before:
            return tree
        if _is_text_key(where) and isinstance(parsed, int | float):
            parsed = value
        parsed = self._texts_from_files({where[-1]: parsed}, where[:-1], folder)[where[-1]]
        inner: Any = tree
        for n, part in enumerate(where[:-1], start=1):
            inner = inner.get(part)
            if inner is None:
                break
            if not isinstance(inner, dict):
                self.problems.add_line(
                    f"--override {key}: {dotted(where[:n])} is {shown(inner, where[:n])}, not a mapping; "
                    f"set {dotted(where[:n])} itself"
                )
                return tree
        return _with(tree, where, parsed)

    def _text(self, path: Path, what: str) -> str | None:
        try:
            return path.read_bytes().decode("utf-8-sig")
        except FileNotFoundError:
            self.problems.add_line(f"{what} does not exist; check the path")
        except UnicodeDecodeError as error:
            self.problems.add_line(f"{what} is not UTF-8 (byte {error.start}); save it as UTF-8")
        except OSError as error:
            self.problems.add_line(f"{what} cannot be read: {error.strerror}")
        return None

    def _yaml(self, text: str, name: str) -> Any:
        loader = _loader()(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            for line in _repeated_keys(node, name):
                self.problems.add_line(line)
            return loader.construct_document(node)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = f", line {mark.line + 1}" if mark and "\n" in text else ""
            said = " ".join(part for part in (error.context, error.problem) if part)
            self.problems.add_line(f"{name}{line}: not valid YAML: {_HELD.sub('${…}', said)}")
        except (yaml.YAMLError, ValueError) as error:
            self.problems.add_line(f"{name}: not valid YAML: {' '.join(str(error).split())}")
        finally:
            loader.dispose()
        return None

    def _json(self, text: str, name: str) -> Any:
        def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            found: dict[str, Any] = {}
            for key, value in pairs:
                if key in found:
                    self.problems.add_line(f"{name}: the key {key!r} stands twice in one object; keep one")
                found[key] = value
            return found

        try:
            return json.loads(text, object_pairs_hook=once)
        except json.JSONDecodeError as error:
            self.problems.add_line(f"{name}, line {error.lineno}: not valid JSON: {error.msg}")
            return None

    def _hold(self, text: str, held: list[_Value]) -> str:
        """The text with each `${…}` put aside: its characters mean something to YAML."""
        pieces: list[str] = []
        at = 0
        while found := _START.search(text, at):
            slashes = found[1]
            end = _closing(text, found.end())
            value: _Value | None
            if len(slashes) % 2:
                value, end = _Value("${"), found.end()
            else:
                value = self._variable(text[found.end() : end - 1]) if end else None
            pieces.append(text[at : found.start()] + slashes[len(slashes) % 2 :])
            if value is None:
                # Not a variable: it stays in the text, and is named if it stands in a value that counts.
                pieces.append("${")
                end = found.end()
            else:
                pieces.append(f"\ue000{len(held)}\ue001")
                held.append(value)
            at = end
        return "".join(pieces) + text[at:]

    def _variable(self, inside: str) -> _Value | None:
        """The value of `NAME` or `NAME:-default`; a default may hold variables itself."""
        form = _NAME.fullmatch(inside)
        if form is None:
            return None
        name, default = form[1], form[2]
        value = os.environ.get(name)
        if value is not None and is_secret_name(name):
            self.secrets.add(value)
        if value or (value is not None and default is None):
            return _Value(value)
        if default is None:
            return _Value(f"${{{name}}}", (name,))
        held: list[_Value] = []
        text, unset = _filled(self._hold(default, held), held)
        quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
        return _Value(text[1:-1] if quoted else text, unset, quoted=quoted)

    def _fill(self, value: Any, where: Where, held: list[_Value], above: list[int]) -> Any:
        """A copy of the data with the values of variables in it."""
        if isinstance(value, dict | list):
            if id(value) in above:
                self.problems.add(where, "an alias that leads back to itself; write the value out")
                return None
            above = [*above, id(value)]
        if isinstance(value, dict):
            filled = {}
            for key, inner in value.items():
                name = _filled(key, held)[0] if isinstance(key, str) else key
                filled[name] = self._fill(inner, (*where, str(name)), held, above)
            return filled
        if isinstance(value, list):
            return [self._fill(inner, (*where, str(n)), held, above) for n, inner in enumerate(value)]
        if not isinstance(value, str):
            return value
        if "${" in value:
            self.problems.add(
                where, "'${' that begins no variable; write ${NAME} or ${NAME:-default}, or \\${ for itself"
            )
        text, unset = _filled(value, held)
        if unset:
            return Unset(text, unset)
        alone = _HELD.fullmatch(value)
        quoted = alone is not None and int(alone[1]) < len(held) and held[int(alone[1])].quoted
        return _typed(text) if isinstance(value, _Held) and not quoted and not _is_text_key(where) else text

    def _texts_from_files(self, tree: dict[str, Any], where: Where, folder: Path) -> dict[str, Any]:
        """A copy with each `file://…` value (not those in lists, as in the toolkit) replaced by the file's text."""
        found: dict[str, Any] = {}
        for key, value in tree.items():
            place = (*where, str(key))
            if isinstance(value, dict):
                found[key] = self._texts_from_files(value, place, folder)
            elif isinstance(value, str) and value.startswith(_FILE) and not isinstance(value, Unset):
                found[key] = self._text_file(value.removeprefix(_FILE), place, folder)
            else:
                found[key] = value
        return found

    def _text_file(self, name: str, where: Where, folder: Path) -> str:
        path = (folder / name).resolve()
        if path.suffix.lower() not in TEXT_FILES:
            kinds = ", ".join(TEXT_FILES)
            self.problems.add(
                where, f"file:// puts the text of a file here, and {path.name} is none of {kinds}; give the path alone"
            )
            return ""
        told = Problems()
        text = Reader(told)._text(path, f"the file {path}")  # noqa: SLF001  # the same reading, said at another place
        for _, line in told.found:
            self.problems.add(where, line)
        return text or ""


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Both, mappings key by key; anything else in `over` replaces what `base` has.

    >>> merged({"a": {"b": 1, "c": [1]}}, {"a": {"c": [2]}})
    {'a': {'b': 1, 'c': [2]}}
    """
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        result[key] = merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result


def unset_in(value: Any, where: Where = ()) -> Iterator[tuple[Where, Unset]]:
    """Every text with an unset variable, and where it stands."""
    if isinstance(value, Unset):
        yield where, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from unset_in(inner, (*where, str(key)))
    elif isinstance(value, list):
        for n, inner in enumerate(value):
            yield from unset_in(inner, (*where, str(n)))


def _is_text_key(where: Where) -> bool:
    return bool(where) and (where[-1] in _TEXT_KEYS or is_secret_name(where[-1]))


def _with(tree: dict[str, Any], where: Where, value: Any) -> dict[str, Any]:
    head, *rest = where
    return {**tree, head: _with(tree.get(head) or {}, tuple(rest), value) if rest else value}


def _closing(text: str, start: int) -> int:
    """Where the brace that is open at `start` is closed (the place after it) on the same line, or 0."""
    depth = 1
    for at in range(start, len(text)):
        if text[at] == "\n":
            return 0
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if not depth:
            return at + 1
    return 0


def _filled(text: str, held: Sequence[_Value]) -> tuple[str, tuple[str, ...]]:
    used = [held[int(number)] for number in _HELD.findall(text) if int(number) < len(held)]
    values = iter(used)
    filled = _HELD.sub(lambda found: next(values).text if int(found[1]) < len(held) else found[0], text)
    return filled, tuple(name for value in used for name in value.unset)


def _typed(text: str) -> Any:
    """What YAML makes of an unquoted text, where it is one value: `8` a number, `[a, b]` a list."""
    loader = _loader()(text)
    try:
        node = loader.get_single_node()
        whole = text[:1] in "[{" if not isinstance(node, yaml.ScalarNode) else node.value == text
        return loader.construct_document(node) if node is not None and whole else (text or None)
    except (yaml.YAMLError, ValueError):
        return text
    finally:
        loader.dispose()


def _repeated_keys(root: yaml.Node, name: str) -> list[str]:
    """A line for each key that stands twice in one mapping."""
    lines: list[str] = []
    seen: set[int] = set()
    todo: list[tuple[yaml.Node, Where]] = [(root, ())]
    while todo:
        node, where = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            todo += [(inner, (*where, str(n))) for n, inner in enumerate(node.value)]
        elif isinstance(node, yaml.MappingNode):
            first: dict[tuple[str, str], int] = {}
            for key, value in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    continue
                line = key.start_mark.line + 1
                if (key.tag, key.value) in first:
                    place = f" in {dotted(where)}" if where else ""
                    earlier = f"first in line {first[key.tag, key.value]}"
                    lines.append(f"{name}, line {line}: the key {key.value!r} stands twice{place}, {earlier}; keep one")
                first.setdefault((key.tag, key.value), line)
                todo.append((value, (*where, key.value)))
    return sorted(lines, key=lambda line: int(re.findall(r"line (\d+)", line)[0]))


@cache
def _loader() -> Any:
    """PyYAML's safe loader, in C where there is one, without dates and with variables set apart."""
    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader: Any = type("EvalFileLoader", (base,), {})
    loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in rules if tag != "tag:yaml.org,2002:timestamp"]
        for first, rules in base.yaml_implicit_resolvers.items()
    }
    loader.add_implicit_resolver("!held", re.compile(f"(?s).*{_HELD.pattern}"), None)
    loader.add_constructor("!held", lambda self, node: _Held(self.construct_scalar(node)))
    return loader
