"""The closure of a module holds all that it may run: found in the text as Python finds it, and seen where results are kept."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from passfit.support.import_closure import ImportGraph, code_digest, own_imports

ROOT = Path(__file__).parents[2]


def imported(file: Path, graph: ImportGraph) -> set[str]:
    """Return the modules that a file imports, by Python's own parser."""
    module = graph.module_of(file)
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    found = {package}
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            base = ".".join((*parts, *filter(None, [node.module])))
            found |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return {each for each in found if graph.file_of(each)}


def test_the_text_of_every_module_has_the_imports_that_python_finds():
    graph = ImportGraph({"passfit": ROOT / "pipeline", "passfit.stages": ROOT / "stages", "tests": ROOT / "tests"})
    files = [
        file
        for name in ("pipeline", "stages", "tests")
        for file in (ROOT / name).rglob("*.py")
        if "repos" not in file.parts
    ]
    assert len(files) > 1000
    for file in files:
        missing = imported(file, graph) - set(graph.imports(graph.module_of(file)))
        assert not missing, f"{file} imports {missing}"


def test_a_closure_follows_imports_of_all_kinds(tmp_path: Path):
    def write(name: str, text: str) -> None:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    write("__init__.py", "")
    write(
        "a.py",
        "if True:\n    def f():\n        from .b.c import (\n            d,  # of b\n            e as g,\n        )\n",
    )
    write("b/__init__.py", "from .. import k\n")
    write("b/c.py", "from . import h\nimport package.deep.m as m\n")
    write("b/h.py", "from ..i import x\n")
    write("b/table.toml", "")
    for name in ("i", "k", "unused", "deep/__init__", "deep/m", "deep/other"):
        write(f"{name}.py", "import json, package.b\n")
    graph = ImportGraph({"package": tmp_path})
    assert graph.closure("package.a") == {
        "package", *(f"package.{name}" for name in ("a", "b", "b.c", "b.h", "i", "k", "deep", "deep.m"))
    }  # fmt: skip
    assert tmp_path / "b" / "table.toml" in graph.files("package.i") and graph.closure("package.none") == set()
    assert graph.module_of(tmp_path / "b" / "__init__.py") == "package.b" and graph.module_of(tmp_path.parent) is None


def test_the_digest_of_code_is_that_of_its_closure():
    graph, module = own_imports(), "passfit.memory.order.stored_order"
    assert "passfit.memory.liveness" in graph.closure(module) and "passfit.report" not in graph.closure(module)
    assert code_digest(module) != code_digest("passfit.memory.sharing.stored_share") != code_digest()


_WATCH = """
import gc, json, sys
from pathlib import Path
from passfit.support import result_store
from passfit.support.import_closure import own_imports

plain, kept, seen = result_store.ResultStore.get_or_make, result_store.kept_bytes, Path(sys.argv[1])

def watched(make):
    closure = own_imports().closure(*result_store.modules_of(make))
    def run():
        ran, before = set(), sys.getprofile()
        def note(frame, event, _):
            if event == "call":
                ran.add(frame.f_globals.get("__name__", ""))
        gc.disable()  # a generator of other code that is collected meanwhile runs to its end
        sys.setprofile(note)
        try:
            return make()
        finally:
            sys.setprofile(before)
            gc.enable()
            outside = sorted(each for each in ran if each.startswith("passfit.") and each not in closure)
            with seen.open("a") as file:
                file.write(json.dumps([result_store.modules_of(make), len(ran), outside]) + "\\n")
    return run

result_store.ResultStore.get_or_make = lambda self, key, make: plain(self, key, make if isinstance(self, result_store.CodeStore) else watched(make))
def kept_bytes(kind, key, make):
    run = watched(make)
    return kept(kind, key, run)
result_store.kept_bytes = kept_bytes
from passfit.cli import main
sys.argv = ["passfit", *sys.argv[2:]]
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("target", ["mps2-an386", pytest.param("x86-64", marks=pytest.mark.nightly)])
def test_nothing_runs_while_a_result_is_computed_but_its_closure(tmp_path: Path, save_tiny_cnn, target: str):
    model, seen = save_tiny_cnn(tmp_path / "m.onnx"), tmp_path / "seen"
    command = [sys.executable, "-c", _WATCH, seen, "compile", model, "--target", target, "--out", tmp_path / "out"]
    environment = os.environ | {"PASSFIT_STORE": str(tmp_path / "store")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in seen.read_text().splitlines()]
    assert len({modules[0] for modules, _, _ in lines}) >= 8 and len(lines) > 20
    outside = {(tuple(modules), each) for modules, _, found in lines for each in found}
    assert not outside
