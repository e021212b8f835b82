"""The toolkit is an extra: without it nothing here is collected. Its own warnings are not ours to mend."""

import warnings
from importlib.util import find_spec

import pytest

TOOLKIT = find_spec("nat") is not None and find_spec("nat.plugins.eval") is not None

if TOOLKIT:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import tests.nat.nateval
        import tests.nat.workflow  # noqa: F401  # here, so that what the toolkit warns of at its import fails no test
else:
    collect_ignore_glob = ["test_*.py"]


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/nat/" in item.path.as_posix():
            # The toolkit dumps a configuration through base types and calls what it has deprecated itself.
            item.add_marker(pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::DeprecationWarning"))


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("RAGPARITY_TAKE_OVER", raising=False)
