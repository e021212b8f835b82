"""The command line: `ragparity eval | check | crossvalidate | calibrate | probe | cache | list | explain`.

Exit codes: 0 all is well; 1 a gate failed or an evaluator has no scored row; 2 the eval file, the data or an
argument is wrong; 130 cancelled. Everything heavy is imported by the command that needs it.
"""

from __future__ import annotations

import atexit
import gc
import sys
from typing import Any

import click

from ragparity.commands.cache import cache
from ragparity.commands.calibrate import calibrate_command
from ragparity.commands.check import check_command
from ragparity.commands.crossvalidate import crossvalidate_command
from ragparity.commands.eval import eval_command
from ragparity.commands.metrics import explain_command, list_command
from ragparity.commands.probe import probe_command
from ragparity.commands.shared import EXIT_CANCELLED, complain


class _Commands(click.Group):
    """Commands that end with 130 on Ctrl-C at any moment: while something is imported, or at the second one."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except KeyboardInterrupt:
            complain("cancelled")
            raise SystemExit(EXIT_CANCELLED) from None


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="ragparity")
def main() -> None:
    """Score RAG and agent answers from an eval file, and see how far the scores can be trusted."""
    for stream in (sys.stdout, sys.stderr):
        # A console that cannot show a character shows another one; it never ends a run.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


for _command in (
    eval_command, check_command, crossvalidate_command, calibrate_command, probe_command, cache, list_command,
    explain_command,
):  # fmt: skip
    main.add_command(_command)


def start() -> None:
    """The command as a process of its own.

    The clients bring hundreds of thousands of objects that stay. The collector would look through them again and again
    while they are imported and once more at the end: a fifth of the CPU time of a small run.
    """
    gc.set_threshold(50_000, 10, 10)
    atexit.register(gc.freeze)
    main()
