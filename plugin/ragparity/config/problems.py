"""Everything that is wrong with a file, collected and said together, one line per problem.

A section of the eval file is a `Section`; the description of each field says what is expected there and
becomes the second half of the line: `eval.evaluators.f.reps: got 0; expected a whole number, 1 or more`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from ragparity.config.masking import clean, is_secret_name
from ragparity.core.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

Where = tuple[str, ...]
"""Where something stands in the file: the keys from the top."""

S = TypeVar("S", bound="Section")

_LONGEST_SHOWN = 60


def _not_a_boolean(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("true and false are no numbers")  # noqa: TRY004  # pydantic reports ValueErrors
    return value


Whole = Annotated[int, BeforeValidator(_not_a_boolean)]
"""A whole number; YAML's true is none."""
Number = Annotated[float, BeforeValidator(_not_a_boolean)]
"""A finite number; YAML's true is none."""
Word = Annotated[str, Field(min_length=1)]
"""A text that is not empty."""


class Section(BaseModel):
    """A mapping of the eval file: unknown keys are refused, and a key with nothing behind it is not set."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _null_is_not_set(cls, raw: Any) -> Any:
        if isinstance(raw, Mapping):
            return {key: value for key, value in raw.items() if value is not None}
        return {} if raw is None else raw


@dataclass(slots=True)
class Problems:
    """The problems found so far, one per place at most: the first one is the cause."""

    found: list[tuple[Where, str]] = field(default_factory=list)

    def add(self, where: Where, text: str) -> None:
        """Note one problem at a place in the file."""
        if all(seen != where for seen, _ in self.found):
            self.found.append((where, f"{dotted(where)}: {text}"))

    def add_line(self, line: str) -> None:
        """Note a problem that belongs to no key."""
        self.found.append(((), line))

    def forgive(self, prefixes: Iterable[Where]) -> None:
        """Drop the problems below these places: parts of the file that are not used."""
        for prefix in prefixes:
            self.found = [one for one in self.found if one[0][: len(prefix)] != prefix]

    def stop(self) -> None:
        """Raise a `ConfigError` with a line for each problem, where there is one."""
        if self.found:
            raise ConfigError("\n".join(dict.fromkeys(line for _, line in self.found)))


def dotted(where: Where) -> str:
    """The place as it is written in messages and after `--override`."""
    return ".".join(where)


def shown(value: Any, where: Where = ()) -> str:
    """A value for a message: short, on one line, and without secrets."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if any(is_secret_name(part) for part in where[-1:]):
        return "a text" if isinstance(value, str) else "a number"
    text = repr(clean(value)) if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"


def suggestion(word: str, known: Iterable[str]) -> str:
    """`did you mean X?` for the middle of a line, or nothing.

    >>> suggestion("llm", ["llm_name", "metric"]), suggestion("metrik", ["llm_name", "metric"])
    ('did you mean llm_name?', 'did you mean metric?')
    """
    known = list(known)
    longer = [one for one in known if word.casefold() in one.casefold().split("_")]
    hint = did_you_mean(word, longer if len(longer) == 1 else known).strip()
    if not hint and len(longer) == 1:
        hint = f"did you mean {longer[0]}?"
    return hint[:1].lower() + hint[1:]


def listed(words: Iterable[str], last: str = "and") -> str:
    """Words as a sentence has them.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    words = list(words)
    return f" {last} ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def read(
    model: type[S], raw: Any, where: Where, problems: Problems, hints: Mapping[str, str] | None = None
) -> S | None:
    """The section, or `None` with its problems noted. `hints` say what to write instead of a wrong key."""
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_context=False)
        misspelt = [one["loc"] for one in wrong if one["type"] == "extra_forbidden"]
        for one in wrong:
            parts = one["loc"]
            if one["type"] == "missing" and any(_means(parts, other) for other in misspelt):
                continue
            place = (*where, *(str(part) for part in parts if part != "[key]"))
            problems.add(
                place, _line(one["type"], one["input"], model=model, parts=parts, place=place, hints=hints or {})
            )
        return None


def _means(missing: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether a wrong key stands beside a missing one and nearly spells it: one line says enough."""
    return missing[:-1] == other[:-1] and bool(suggestion(str(other[-1]), [str(missing[-1])]))


def _line(kind: str, value: Any, *, model: type[Section], parts: Any, place: Where, hints: Mapping[str, str]) -> str:
    info, siblings = _find(model, parts)
    if kind == "extra_forbidden":
        return unknown_key(place[-1], siblings, hints if len(parts) == 1 else {})
    if kind == "invalid_key" or parts[-1:] == ("[key]",):
        return "a key that is no text (YAML reads yes, no, on and off as true and false); put it into quotes"
    expected = _expected(info, parts, model)
    if kind == "missing":
        return f"missing; expected {expected}"
    choices = _choices(info.annotation) if info else ()
    hint = suggestion(value, choices) if isinstance(value, str) else ""
    return f"got {shown(value, place)}; expected {expected}" + (f"; {hint}" if hint else "")


def unknown_key(key: str, known: Iterable[str], hints: Mapping[str, str] | None = None) -> str:
    """The second half of the line about a key that does not exist."""
    known = list(known)
    if hints and key in hints:
        return f"unknown key; {hints[key]}"
    return f"unknown key; {suggestion(key, known) or f'the keys here are {listed(known)}'}"


def _find(model: type[Section], parts: Iterable[Any]) -> tuple[FieldInfo | None, list[str]]:
    """The field that a pydantic location ends in, and the names of the fields beside it."""
    inside: type[Section] | None = model
    info: FieldInfo | None = None
    siblings = keys_of(model)
    through_name = False
    for part in parts:
        if through_name:
            through_name = False
        elif inside is not None:
            siblings = keys_of(inside)
            info = siblings.get(str(part))
            inside, through_name = _inside(info.annotation) if info else (None, False)
    return info, list(siblings)


def keys_of(model: type[Section]) -> dict[str, FieldInfo]:
    """The fields of a section by the keys that the file has for them."""
    return {info.alias or name: info for name, info in model.model_fields.items()}


def _inside(annotation: Any) -> tuple[type[Section] | None, bool]:
    """The section that a field holds, and whether it stands under names (`dict[str, Section]`)."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation, False
    by_name = get_origin(annotation) is dict
    for inner in get_args(annotation):
        section, deeper = _inside(inner)
        if section is not None:
            return section, by_name or deeper
    return None, by_name


def _choices(annotation: Any) -> tuple[str, ...]:
    if get_origin(annotation) is Literal:
        return tuple(str(choice) for choice in get_args(annotation))
    return next((found for inner in get_args(annotation) if (found := _choices(inner))), ())


def _expected(info: FieldInfo | None, parts: Any, model: type[Section]) -> str:
    if info is None:
        return f"a mapping with {listed(keys_of(model))}" if not parts else "another value"
    if choices := _choices(info.annotation):
        return listed(choices, "or")
    if info.description:
        return info.description
    section, by_name = _inside(info.annotation)
    if section is None:
        return "another value"
    keys = listed(keys_of(section))
    return f"a mapping of names to {keys}" if by_name else f"a mapping with {keys}"
