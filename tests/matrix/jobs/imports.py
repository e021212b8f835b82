"""With every extra: each package is there and imports, and a start of ragparity imports none of them."""

import importlib
import json
import os
import subprocess
import sys

from tests.matrix.distributions import asked_for_by_extras, modules, needed

STARTS = {
    "the package": "import ragparity",
    "--help": "from ragparity.cli import main; main(['--help'], standalone_mode=False)",
    "check": "from ragparity.cli import main; main(['check', 'configs/quickstart.yml'], standalone_mode=False)",
}


def main() -> None:
    brought, always = modules(), needed()
    optional = {top for top, names in brought.items() if not names & (always | {"pip", "setuptools"})}
    idle = loaded_after("pass")
    for what, code in STARTS.items():
        found = (loaded_after(code) - idle) & optional
        assert not found, f"{what} imports {sorted(found)}"
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # as ragparity does; else its import asks another host
    for name in sorted(asked_for_by_extras()):
        for top in sorted(top for top, names in brought.items() if name in names and not top.startswith("_")):
            print(name, top, flush=True)
            importlib.import_module(top)


def loaded_after(code: str) -> set[str]:
    """The modules of the first level that a fresh interpreter has after this."""
    script = f"{code}\nimport json, sys\nprint('\\n' + json.dumps([name.split('.')[0] for name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    main()
