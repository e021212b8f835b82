"""What stays unimported until it is needed, looked up in a fresh interpreter."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = (
    "ragas", "deepeval", "nat", "langchain_core", "langchain_openai", "openai", "pandas", "scipy", "datasets",
    "matplotlib",
)  # fmt: skip


def modules_after(code: str) -> set[str]:
    script = f"import sys, json\n{code}\nprint('\\n' + json.dumps([name.split('.')[0] for name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "code",
    [
        "import ragparity",
        "from ragparity.cli import main\nmain(['--help'], standalone_mode=False)",
        "from ragparity.cli import main\nmain(['check', 'configs/quickstart.yml'], standalone_mode=False)",
        "from ragparity.cli import main\nmain(['explain', 'Faithfulness'], standalone_mode=False)",
    ],
    ids=["import", "help", "check", "explain"],
)
def test_no_client_and_no_framework_is_imported_before_a_run(code):
    assert not modules_after(code) & set(HEAVY)


def test_help_does_not_even_import_pydantic():
    code = "from ragparity.cli import main\nmain(['--help'], standalone_mode=False)"
    assert not modules_after(code) & {"pydantic", "yaml", "rich", "numpy"}


def test_importing_leaves_the_event_loop_machinery_alone():
    code = (
        "import asyncio\nbefore = {name: getattr(asyncio, name) for name in dir(asyncio)}\n"
        "import ragparity\nfrom ragparity import evaluate\n"
        "evaluate([{'question': 'q', 'answer': 'a', 'ground_truth': 'a'}], metrics=['ExactMatch'])\n"
        "after = {name: getattr(asyncio, name) for name in dir(asyncio)}\nassert before == after"
    )
    modules_after(code)
