"""The command `ragparity cache`: what is stored, and removing it."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from ragparity.commands.shared import FILE, stop
from ragparity.core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

_SQLITE = b"SQLite format 3\x00"
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@click.group("cache")
def cache() -> None:
    """Look at the stored judge replies, or remove some. FILE is an eval file or the cache itself."""


def _cache_in(file: Path) -> Path:
    """The cache that is meant: the file itself, or the one that an eval file names."""
    try:
        with file.open("rb") as opened:
            start = opened.read(len(_SQLITE))
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror or error})") from error
    if not start or start == _SQLITE or file.suffix.lower() not in (".yml", ".yaml", ".json"):
        return file
    from ragparity.config import load_eval_file

    return load_eval_file(file).general.ragparity.cache.path


def _age(_context: click.Context, _option: click.Parameter, value: str | None) -> timedelta | None:
    if value is None:
        return None
    found = re.fullmatch(r"(\d+)\s*([mhdw])", value.strip())
    if found is None:
        raise click.BadParameter(f"{value!r}: expected a number with m, h, d or w after it, e.g. 30d")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


@cache.command("stats")
@click.argument("file", type=FILE)
def stats_command(file: Path) -> None:
    """Say how many replies of which judges are stored, and since when."""
    from ragparity.cache_file import stats

    try:
        path = _cache_in(file)
        groups = stats(path)
    except ConfigError as error:
        stop(*str(error).splitlines())
    size = path.stat().st_size / 1e6
    click.echo(f"{path}: {sum(one.replies for one in groups)} replies, {size:.1f} MB")
    for one in groups:
        click.echo(f"  {one.judge}: {one.replies}, {one.oldest} to {one.newest}")


@cache.command("prune")
@click.argument("file", type=FILE)
@click.option("--older-than", callback=_age, metavar="AGE", help="Replies older than this: 90m, 12h, 30d or 8w.")
@click.option("--judge", metavar="TEXT", help="Replies of judges whose name holds this text.")
@click.option("--all", "everything", is_flag=True, help="Every reply.")
def prune_command(file: Path, *, older_than: timedelta | None, judge: str | None, everything: bool) -> None:
    """Remove stored replies: old ones, those of a judge, or all."""
    from ragparity.cache import utc_now
    from ragparity.cache_file import prune

    if everything == (older_than is not None or judge is not None):
        raise click.UsageError("say what to remove: --older-than, --judge or both; or --all alone")
    try:
        path = _cache_in(file)
        removed = prune(path, before=None if older_than is None else utc_now() - older_than, judge=judge)
    except ConfigError as error:
        stop(*str(error).splitlines())
    click.echo(f"{path}: {removed} replies removed")
