"""Clean-ups of a sample that an eval file can ask for by name. What was changed is noted, and the original kept."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from ragparity.core.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ragparity.core.sample import Sample

_DATA_URI = re.compile(
    r"data:(?P<type>[\w.+-]+/[\w.+-]+)(?:;[\w.+-]+=[\w.+-]+)*(?:;base64,[\w+/=%-]+|(?:;[\w-]+)?,[^\s\"'<>()]+)",
    re.ASCII,
)
"""A data URI (RFC 2397) with a media type and something in it."""

ORIGINAL = "response_before_preprocessing"
"""The entry of `extra` that keeps the response as it was."""


def strip_data_uris(sample: Sample) -> Sample:
    """The response with each data URI replaced by its media type and length in characters.

    >>> from ragparity.core.sample import Sample
    >>> strip_data_uris(Sample(response="See data:image/png;base64,iVBORw0KGgo= here.")).response
    'See [data URI: image/png, 34 characters] here.'
    """
    if sample.response is None or "data:" not in sample.response:
        return sample
    short, count = _DATA_URI.subn(
        lambda found: f"[data URI: {found['type']}, {len(found[0])} characters]", sample.response
    )
    if not count:
        return sample
    return replace(
        sample,
        response=short,
        extra={**sample.extra, ORIGINAL: sample.response},
        notes=(
            *sample.notes,
            f"response: {count} data URI{'s' if count > 1 else ''} replaced by media type and length",
        ),
    )


PREPROCESSORS: Mapping[str, Callable[[Sample], Sample]] = {"strip_data_uris": strip_data_uris}
"""Every clean-up by name."""


def chosen(names: Iterable[str]) -> tuple[Callable[[Sample], Sample], ...]:
    """The clean-ups of these names, in order; `ConfigError` for an unknown one."""
    found = []
    for name in names:
        if name not in PREPROCESSORS:
            raise ConfigError(
                f"preprocess: unknown name {name!r}; there is {', '.join(PREPROCESSORS)}."
                f"{did_you_mean(str(name), PREPROCESSORS)}"
            )
        found.append(PREPROCESSORS[name])
    return tuple(found)
