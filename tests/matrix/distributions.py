"""The distributions of this environment: what ragparity needs, what its extras ask for, and the modules of both."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, packages_distributions, requires

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def needed() -> set[str]:
    """ragparity without extras, and everything that it brings."""
    seen: set[tuple[str, str]] = set()
    ahead = [("ragparity", "")]
    while ahead:
        name, extra = one = ahead.pop()
        if one in seen:
            continue
        try:
            lines = requires(name) or []
        except PackageNotFoundError:  # needed on another platform only, or under another Python
            continue
        seen.add(one)
        for requirement in map(Requirement, lines):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                ahead += [(canonicalize_name(requirement.name), wanted) for wanted in ("", *requirement.extras)]
    return {name for name, _ in seen}


def asked_for_by_extras() -> set[str]:
    """The distributions that the extras name."""
    lines = map(Requirement, requires("ragparity") or [])
    return {canonicalize_name(one.name) for one in lines if one.marker and "extra" in str(one.marker)}


def modules() -> dict[str, set[str]]:
    """The distributions that have a part in each module of the first level."""
    return {top: {canonicalize_name(name) for name in names} for top, names in packages_distributions().items()}
