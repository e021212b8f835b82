"""What commands have in common: options, lines on the error stream, exit codes, and how a run may end early."""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from ragparity.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from ragparity.config import EvalFile
    from ragparity.report.progress import Progress

T = TypeVar("T")

EXIT_FAILED, EXIT_CONFIG, EXIT_CANCELLED = 1, 2, 130

FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)

OVERRIDE = click.option(
    "--override", "overrides", type=(str, str), multiple=True, metavar="KEY VALUE",
    help="Set a value of the eval file, e.g. eval.general.max_concurrency 4. May be repeated.",
)  # fmt: skip
DATASET = click.option("--dataset", "dataset_path", type=FILE, help="Rows from this file instead.")
BACKEND = click.option("--backend", help="Backend of every evaluator, in place of the file's.")
OUTPUT = click.option("--output", type=FOLDER, help="Folder of the run, in place of the file's output_dir.")
LIMIT = click.option("--limit", type=click.IntRange(min=1), help="Only the first N rows.")
SAMPLE = click.option("--sample", type=click.IntRange(min=1), help="Only N rows, drawn at random.")
RESUME = click.option("--resume", is_flag=True, help="Continue a run: what was scored under the same settings is kept.")
OVERWRITE = click.option("--overwrite", is_flag=True, help="Replace an unfinished run.")
NO_PROBE = click.option("--no-probe", is_flag=True, help="Do not ask every model one small thing before a large run.")
QUIET = click.option("--quiet", is_flag=True, help="No progress.")


def complain(*lines: str) -> None:
    """Say something on the error stream."""
    for line in lines:
        click.echo(f"ragparity: {line}", err=True)


def stop(*lines: str) -> NoReturn:
    """End with the exit code for an eval file, data or an argument that is wrong."""
    complain(*lines)
    raise SystemExit(EXIT_CONFIG)


def load(file: Path, overrides: tuple[tuple[str, str], ...]) -> EvalFile:
    """The eval file; what is wrong with it ends the command."""
    from ragparity.config import load_eval_file

    try:
        return load_eval_file(file, overrides)
    except ConfigError as error:
        stop(*str(error).splitlines())


def numbers(_context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> dict[str, float]:
    """The values of an option `NAME=NUMBER`."""
    import math

    example = "calls=100" if option.name == "budget" else "faithfulness=0.8"
    found = {}
    for value in values:
        name, _, text = value.rpartition("=")
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not name or not math.isfinite(number):
            raise click.BadParameter(f"{value!r}: expected NAME=NUMBER, e.g. {example}")
        found[name] = number
    return found


def run(work: Coroutine[Any, Any, T]) -> T:
    """The result of the work of a command; a request to terminate cancels it as Ctrl-C does."""
    return asyncio.run(_until_terminated(work))


async def _until_terminated(work: Coroutine[Any, Any, T]) -> T:
    task = asyncio.ensure_future(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task


@contextmanager
def ends_early(path: Path, progress: Progress, show_what_there_is: Callable[[], None]) -> Iterator[None]:
    """Whatever ends a run before its time becomes a line and an exit code, with what was scored shown and kept."""
    from ragparity.probe import ProbeFailed

    try:
        yield
    except (KeyboardInterrupt, asyncio.CancelledError):
        progress.close()
        show_what_there_is()
        complain(f"cancelled; what was scored is kept in {path}; continue with --resume")
        raise SystemExit(EXIT_CANCELLED) from None
    except ProbeFailed as error:
        progress.close()
        complain(*str(error).splitlines(), "nothing was scored; mend this, or go on with --no-probe")
        raise SystemExit(EXIT_FAILED) from None
    except ConfigError as error:
        progress.close()
        stop(*str(error).splitlines())
    except OSError as error:
        progress.close()
        show_what_there_is()
        stop(f"{path}: {error.strerror or error}; what was scored before is kept, continue with --resume")
    progress.close()
