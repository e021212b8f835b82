"""Who may import whom, read from the sources themselves."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = {"ragparity": ROOT / "plugin/ragparity", "ragparity_adapters": ROOT / "adapters/ragparity_adapters"}
MODULES = sorted(path for room in ROOMS.values() for path in room.rglob("*.py"))

NAMED_FOR_LANGCHAIN = {
    "calls.py",
    "chat_reply.py",
    "endpoint.py",
    "langchain.py",
    "openai_client.py",
    "llms.py",
    "embeddings.py",
    "sync_models.py",
}


def name_of(path: Path) -> str:
    for package, root in ROOMS.items():
        if path.is_relative_to(root):
            parts = [package, *path.relative_to(root).with_suffix("").parts]
            return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    raise AssertionError(path)


def imports_of(path: Path, *, at_top_only: bool = False) -> set[str]:
    """Modules that a file imports when it runs; what stands under TYPE_CHECKING does not count."""
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if at_top_only and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(str(node.module))
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text(encoding="utf-8")))
    return found


def ours(imported: set[str]) -> set[str]:
    return {name for name in imported if name.split(".")[0] in ROOMS}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_imports_only_what_its_room_may_import(path):
    name, imported = name_of(path), imports_of(path)
    mine = ours(imported)
    if name.startswith("ragparity.core"):
        assert all(one.startswith("ragparity.core") for one in mine), mine
        outside = {one.split(".")[0] for one in imported} - set(__import__("sys").stdlib_module_names) - {"ragparity"}
        assert not outside, f"core is standard library only, not {outside}"
    elif name.startswith("ragparity_adapters"):
        assert all(one.startswith(("ragparity.core", "ragparity_adapters")) or one == "ragparity" for one in mine), mine
    elif name.startswith("ragparity.metrics"):
        allowed = (
            "ragparity.core",
            "ragparity.registry",
            "ragparity.metrics",
            "ragparity.verdicts",
            "ragparity.vectors",
        )
        assert all(one.startswith(allowed) or one == "ragparity" for one in mine), mine
    if not name.startswith("ragparity_adapters") and not name.startswith("ragparity.wiring"):
        assert not any(one.startswith("ragparity_adapters") for one in mine), (
            f"only wiring imports the adapters: {mine}"
        )


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_foreign_packages_are_imported_only_in_the_files_named_for_them(path):
    name, imported = name_of(path), imports_of(path)
    tops = {one.split(".")[0] for one in imported}
    if "ragas" in tops:
        assert name.startswith("ragparity_adapters.backends."), name
    if "nat" in tops:
        assert name.startswith("ragparity.nat"), name
    if "matplotlib" in tops:
        assert name.startswith("ragparity.report.plots."), name
    if "tenacity" in tops:
        assert name == "ragparity.middleware", name
    if tops & {"langchain_core", "langchain_openai", "openai"}:
        assert path.name in NAMED_FOR_LANGCHAIN or "backends" in path.parts, name


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_every_exception_is_caught_in_the_runner_only(path):
    caught = [
        node.lineno
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ExceptHandler)
        and node.type is not None
        and any(isinstance(part, ast.Name) and part.id == "Exception" for part in ast.walk(node.type))
    ]
    assert not caught or name_of(path) == "ragparity.runner", f"line {caught}"
