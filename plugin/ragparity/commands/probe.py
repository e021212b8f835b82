"""The command `ragparity probe`: one cheap call per llm entry and embedder, and what they showed."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING

import click

from ragparity.commands import shared
from ragparity.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.table import Table

    from ragparity.probe import Probed
    from ragparity.wiring import Plan


@click.command("probe")
@click.argument("file", type=shared.FILE)
@shared.OVERRIDE
@shared.BACKEND
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def probe_command(*, file: Path, overrides: tuple[tuple[str, str], ...], backend: str | None, as_json: bool) -> None:
    """Ask every judge and embedder of an eval FILE one small thing: key, model, answers, speed."""
    from ragparity import wiring

    try:
        plan = wiring.make_plan(shared.load(file, overrides), default_backend=backend)
        if plan.problems:
            shared.stop(*plan.problems)
        found = asyncio.run(_probed(plan))
    except ConfigError as error:
        shared.stop(*str(error).splitlines())
    if as_json:
        click.echo(json.dumps([one.as_json() for one in found], ensure_ascii=False, indent=2))
    else:
        _show(found)
    for one in found:
        for line in one.lines():
            shared.complain(line)
    if any(one.status != "ok" for one in found):
        raise SystemExit(shared.EXIT_FAILED)


async def _probed(plan: Plan) -> list[Probed]:
    from ragparity import wiring
    from ragparity.probe import probe
    from ragparity.spending import Budget

    session = wiring.open_session(plan, budget=Budget())
    try:
        return await probe(plan, session)
    finally:
        await session.aclose()


def _show(found: Sequence[Probed]) -> None:
    from ragparity.report.terminal import console

    if not found:
        click.echo("nothing to probe: no evaluator asks a model")
        return
    out = console(sys.stdout)
    out.print(_table(found))
    for one in found:
        for line in one.notes:
            out.print(f"note: {line}", markup=False)


def _table(found: Sequence[Probed]) -> Table:
    """One row per entry."""
    from rich.table import Table
    from rich.text import Text

    from ragparity.core.ports import RATING_TOKENS

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    heads = ("entry", "model", "status", f"rating in {RATING_TOKENS} tokens", "structured", "token limit", "thinks")
    for head in heads:
        table.add_column(head, overflow="fold")
    table.add_column("seconds", justify="right")
    for one in found:
        cells = [f"{one.section}.{one.name}", one.identity, one.status]
        if one.section == "embedders":
            cells += ["", f"{one.dimensions} dimensions" if one.dimensions else "", "", ""]
        else:
            thinks = one.found.get("thinks")
            cells += [
                _yes(one.short) if "rating" not in one.failed else "failed",
                "failed" if "structured" in one.failed else str(one.found.get("structured") or ""),
                str(one.found.get("token_parameter") or ""),
                _yes(thinks) if one.worked else "",
            ]
        cells.append("" if one.seconds is None else f"{one.seconds:.2f}")
        table.add_row(*map(Text, cells))
    return table


def _yes(value: object) -> str:
    return "" if value is None else "yes" if value else "no"
