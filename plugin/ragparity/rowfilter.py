"""The `filter` of a data set: the toolkit's allowlist and denylist."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from ragparity.core.errors import ConfigError
from ragparity.core.values import is_absent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ragparity.dataset import RawRow


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Which rows to read: `allow` and `deny` are values by column; `*`, `?` and `[…]` are wildcards.

    A row is kept when every column of `allow` matches one of its values and no column of `deny` does.
    Values are compared as text, upper and lower case apart (numbers also as numbers, true and false in any
    case). An absent value matches nothing. Lines that could not be parsed are kept: they are failures to
    be seen.
    """

    allow: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    deny: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, config: Mapping[str, Any] | None) -> RowFilter:
        """The filter in an eval file: `{allowlist: {field: {column: [values]}}, denylist: …}`."""
        parts = []
        for name in ("allowlist", "denylist"):
            part = (config or {}).get(name) or {}
            values = part.get("field") or {} if isinstance(part, Mapping) else None
            if not isinstance(values, Mapping) or not all(isinstance(one, list) for one in values.values()):
                raise ConfigError(f"dataset.filter.{name}: expected {{field: {{column: [values]}}}}, found {part!r}")
            parts.append(values)
        return cls(*parts)

    def __bool__(self) -> bool:
        return bool(self.allow or self.deny)

    def keeps(self, row: Any) -> bool:
        """Whether a row passes.

        >>> rows = RowFilter(allow={"lang": ["de", "fr*"]}, deny={"id": [7]})
        >>> [rows.keeps({"id": one, "lang": lang}) for one, lang in ((1, "de"), (2, "fr-CA"), (3, "en"), (7, "de"))]
        [True, True, False, False]
        """
        if not isinstance(row, Mapping):
            return True
        return all(_matches(row.get(column), values) for column, values in self.allow.items()) and not any(
            _matches(row.get(column), values) for column, values in self.deny.items()
        )

    def apply(self, rows: Iterable[RawRow], source: str) -> Iterator[RawRow]:
        """The rows that pass; `ConfigError` when none does, naming allowed columns that no row has."""
        unseen = set(self.allow)
        kept = 0
        for row in rows:
            if unseen and isinstance(row, Mapping):
                unseen.difference_update(row)
            if self.keeps(row):
                kept += 1
                yield row
        if not kept:
            absent = ", ".join(repr(column) for column in self.allow if column in unseen)
            why = f": no row has the column {absent}" if absent else ""
            raise ConfigError(f"dataset.filter: none of the rows of {source} is left{why}")


def _matches(value: Any, wanted: Sequence[Any]) -> bool:
    if is_absent(value):
        return False
    shown = str(value)
    if isinstance(value, bool):
        return any(shown.casefold() == str(one).casefold() or one == "*" for one in wanted)
    for one in wanted:
        if isinstance(one, int | float) and isinstance(value, int | float) and one == value:
            return True
        if fnmatchcase(shown, str(one)):
            return True
    return False
