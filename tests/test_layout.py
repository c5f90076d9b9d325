"""The house rules that no single module can hold: packages, imports, start-up, dependencies."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import tomli

ROOT = Path(__file__).parents[1]
PYPROJECT = ROOT / "pyproject.toml"
SETUPTOOLS = tomli.loads(PYPROJECT.read_text())["tool"]["setuptools"]

#: what `passfit --help` must not wait for
HEAVY = ("tvm", "mlflow", "dvc", "onnxruntime", "onnx", "jinja2", "sklearn", "vl_convert")


def python_files(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


def test_every_folder_of_the_tree_is_in_the_list_of_packages():
    tree = {"passfit", "passfit.stages"}
    for file in (ROOT / "pipeline").rglob("*.py"):
        tree.add(".".join(("passfit", *file.parent.relative_to(ROOT / "pipeline").parts)))
    assert sorted(SETUPTOOLS["packages"]) == sorted(tree)


def test_every_package_has_an_init():
    folders = {file.parent for file in python_files("pipeline", "stages")}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_every_folder_of_tests_is_a_package():
    # So that two folders may have files of one name, and tests may import their neighbours.
    # Scripts of the repos that an end-to-end test copies are not ours.
    folders = {file.parent for file in python_files("tests") if "repos" not in file.parts}
    assert [str(folder) for folder in sorted(folders) if not (folder / "__init__.py").is_file()] == []


def test_every_file_that_is_not_python_is_package_data():
    patterns = SETUPTOOLS["package-data"]["*"]
    files = [f for folder in ("pipeline", "stages") for f in (ROOT / folder).rglob("*") if f.is_file()]
    data = [f for f in files if f.suffix not in (".py", ".pyc") and "__pycache__" not in f.parts]
    assert data, "the catalogue of targets at least"
    assert [f.name for f in data if not any(f.match(pattern) for pattern in patterns)] == []


@pytest.mark.parametrize("folder", ["pipeline", "stages", "tests", "benchmarks"])
def test_nothing_imports_the_folder_as_a_package(folder):
    # In the root of the checkout `import pipeline` works, and is a second copy of passfit with classes of its own.
    for file in python_files(folder):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            assert not [n for n in names if n.split(".")[0] in ("pipeline", "stages")], f"{file}:{node.lineno}"


def test_imports_go_one_way(tmp_path):
    # import-linter reads folders, and knows no package-dir: show it the tree that a wheel would have.
    tree = tmp_path / "passfit"
    tree.mkdir()
    for entry in (ROOT / "pipeline").iterdir():
        (tree / entry.name).symlink_to(entry)
    (tree / "stages").symlink_to(ROOT / "stages")
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--config", PYPROJECT],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_folder_and_module_has_its_place_in_the_import_contract():
    contract = tomli.loads(PYPROJECT.read_text())["tool"]["importlinter"]["contracts"][0]
    placed = {name.strip() for layer in contract["layers"] for name in layer.split("|")}
    entries = [entry for entry in (ROOT / "pipeline").iterdir() if any(entry.glob("*.py")) or entry.suffix == ".py"]
    top = {f"passfit.{entry.stem}" for entry in entries if not entry.name.startswith("__")}
    assert placed == top | {"passfit.stages"}


def test_the_command_line_starts_without_heavy_imports():
    code = f"import sys, passfit.cli; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/", check=False)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_every_dependency_says_what_it_is_for():
    text = PYPROJECT.read_text()
    blocks = [text.partition("\ndependencies = [\n")[2].partition("\n]")[0]]
    blocks += re.findall(
        r"^\w+ = \[\n(.*?)^\]", text.partition("[project.optional-dependencies]")[2], re.MULTILINE | re.DOTALL
    )[:1]
    for block in blocks:
        uses_of_comment = 2
        for line in map(str.strip, block.splitlines()):
            if line.startswith("#"):
                uses_of_comment = 0
            elif line and not line.startswith('"pytest'):
                uses_of_comment += 1
                # two packages that belong together may share one: tvm and its ffi, typer and rich
                assert uses_of_comment <= 2, f"{line} has no comment"


def test_the_licence_is_apache():
    assert "Apache License\n                           Version 2.0" in (ROOT / "LICENSE").read_text()


def test_no_folder_of_the_tree_holds_more_than_fifteen_modules():
    folders = [ROOT / "pipeline", *(path for path in (ROOT / "pipeline").rglob("*") if path.is_dir())]
    counts = {folder: sum(file.name != "__init__.py" for file in folder.glob("*.py")) for folder in folders}
    assert {str(folder): count for folder, count in counts.items() if count > 15} == {}


def test_no_file_is_longer_than_350_lines():
    lengths = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in python_files("pipeline", "stages")}
    assert {str(file): length for file, length in lengths.items() if length > 350} == {}


def test_no_ten_lines_of_code_stand_twice():
    first: dict[tuple[str, ...], str] = {}
    twice = []
    for file in python_files("pipeline", "stages"):
        text = file.read_text(encoding="utf-8").splitlines()
        code = [(number, line.strip()) for number, line in enumerate(text, 1) if is_code(line.strip())]
        for window in zip(*(code[start:] for start in range(10))):
            place = f"{file.relative_to(ROOT)}:{window[0][0]}"
            other = first.setdefault(tuple(line for _, line in window), place)
            if other != place:
                twice.append((other, place))
    assert twice == []


def is_code(line: str) -> bool:
    """Tell a line that counts from blank lines, comments, imports and lone punctuation."""
    return any(each.isalnum() for each in line) and not line.startswith(("#", "import ", "from "))
