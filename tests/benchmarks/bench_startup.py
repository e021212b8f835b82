"""How long a user waits for the command, and how much an installation brings.

Run `python -m tests.benchmarks startup` in the project folder. The wheel is built and installed with its base
dependencies into a fresh environment, with compiled bytecode, so a package index must be reachable. What counts is CPU
time, the least of several starts: other work on the machine can only add to it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STARTS = 7
HELP_S, CHECK_S = 0.4, 1.5
DISTRIBUTIONS = 60
OWN_TOOLS = ("pip", "setuptools", "wheel")


def installed(folder: Path) -> Path:
    """The `bin` of a fresh environment with the wheel in it."""
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # our own build
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "env", with_pip=True)
    binaries = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    install = [str(binaries / "python"), "-m", "pip", "install", "--quiet", "--compile", str(wheel)]
    subprocess.run(install, check=True)  # our own wheel
    return binaries


def cpu_seconds(command: list[str]) -> float:
    """User and system time of the fastest of several starts."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    found = []
    for _ in range(STARTS):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT, env=environment)  # our own command
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
        found.append(usage.ru_utime + usage.ru_stime)
    return min(found)


def main() -> None:
    """Print the figures beside their targets."""
    with tempfile.TemporaryDirectory() as name:
        binaries = installed(Path(name))
        command = str(binaries / "ragparity")
        python = [str(binaries / "python"), "-c"]
        bare = cpu_seconds([*python, "pass"])
        for shown, arguments, target in (
            ("--help", ["--help"], HELP_S),
            ("check configs/quickstart.yml", ["check", "configs/quickstart.yml"], CHECK_S),
        ):
            seconds = cpu_seconds([command, *arguments])
            said = f"target under {target:g} s: {'met' if seconds < target else 'MISSED'}"
            print(f"ragparity {shown}: {seconds:.2f} s CPU, {seconds / bare:.1f} times a bare Python ({said})")
        listing = subprocess.run(  # our own environment
            [*python, "import importlib.metadata as m; print(*{d.name.lower() for d in m.distributions()}, sep='\\n')"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        names = [name for name in listing.stdout.split() if name not in OWN_TOOLS]
        said = f"target at most {DISTRIBUTIONS}: {'met' if len(names) <= DISTRIBUTIONS else 'MISSED'}"
        size = sum(path.stat().st_size for path in (binaries.parent / "lib").rglob("*") if path.is_file()) / 1e6
        print(f"distributions of a base installation: {len(names)} ({said}), {size:.0f} MB with pip")


if __name__ == "__main__":
    main()
