"""Models from Python: the page and the notebook run as they are written, libraries run as devices run them, errors say what to do."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from onnx import helper

import passfit
from passfit.backend.built import ArrayPort
from passfit.verify.runner import numpy_dtype

from ..models import model_of

pytestmark = pytest.mark.slow
DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the model that the page speaks of."""
    folder = tmp_path_factory.mktemp("python")
    random = np.random.default_rng(0)
    weights = {f"w{n}": random.normal(0, 0.1, shape).astype(np.float32) for n, shape in enumerate([(8, 3, 3, 3), (4, 8, 3, 3)])}  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["image", "w0"], ["a"], pads=[1] * 4),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w1"], ["scores"], pads=[1] * 4),
    ]
    onnx.save(model_of(nodes, {"image": (1, 3, 32, 32)}, {"scores": (1, 4, 32, 32)}, weights), folder / "model.onnx")
    return folder


@pytest.fixture(scope="module")
def library(place: Path) -> passfit.RunnableLibrary:
    return passfit.compile(place / "model.onnx", "x86-64", place / "library", ram="256KiB", evaluations=1)


@pytest.mark.parametrize("size", [-5, 1.5, "big"])
def test_what_is_not_a_size_is_refused(place: Path, size: int):
    with pytest.raises(passfit.PassfitError, match="is not a size"):
        passfit.compile(place / "model.onnx", "x86-64", place / "refused", ram=size)


def printed(code: str, names: dict[str, object]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, "a cell", "exec"), names)
    return out.getvalue()


def words(text: str) -> list[str]:
    """Return a text without its figures, which better plans change."""
    return re.sub(r"\d[\d.,e-]*", "", text).split()


def test_the_notebook_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((DOCS / "python-api.ipynb").read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    names: dict[str, object] = {}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(cells) >= 6 and [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        shown = "".join(line for output in cell["outputs"] for line in output["text"])
        assert words(printed("".join(cell["source"]), names)) == words(shown)


def test_a_scalar_input_stays_one(tmp_path: Path):
    add = helper.make_node("Add", ["x", "v"], ["y"])
    onnx.save(model_of([add], {"x": [], "v": [3]}, {"y": [3]}), tmp_path / "model.onnx")
    library = passfit.compile(tmp_path / "model.onnx", "x86-64", tmp_path / "library", evaluations=1)
    found = library.run(x=np.float32(2), v=np.arange(3, dtype=np.float32))
    assert np.array_equal(found["y"], [2, 3, 4])


def test_the_page_runs_as_it_is_written(place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(place)
    text = (DOCS / "python-api.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    outputs = [printed(block, names) for block in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)]
    assert len(outputs) >= 6 and all(outputs)
    assert "rpi5" in outputs[-1]


def test_the_page_names_every_public_name():
    table = (DOCS / "python-api.md").read_text(encoding="utf-8").partition("## Names")[2]
    named = {name for span in re.findall(r"`([^`]+)`", table) for name in re.findall(r"^\w+", span)}
    assert set(passfit.__all__) <= named
    assert set(passfit.__all__) == set(passfit._PUBLIC)


_IMPORTED = re.compile(r"from \.([\w.]+) import \w+ as (\w+)")


def test_every_public_name_is_what_type_checkers_read():
    """Modules of these names would hide them once imported."""
    folders = {each.name for each in pkgutil.iter_modules(passfit.__path__)}
    assert not folders & set(passfit.__all__)
    read = {
        name: module for module, name in _IMPORTED.findall(Path(f"{passfit.__file__}i").read_text(encoding="utf-8"))
    }
    assert read == passfit._PUBLIC
    for name, module in read.items():
        assert getattr(passfit, name) is getattr(importlib.import_module(f"passfit.{module}"), name)


def test_the_package_starts_without_heavy_imports():
    code = "import sys, passfit; print({'numpy', 'onnx', 'tvm', 'pydantic', 'typer'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_the_library_computes_what_onnx_runtime_does(place: Path, library: passfit.RunnableLibrary):
    import onnxruntime

    image = np.random.default_rng(1).random((1, 3, 32, 32), np.float32)
    expected = onnxruntime.InferenceSession(place / "model.onnx").run(None, {"image": image})[0]
    found = passfit.load(library.folder).run(image=image)
    assert set(found) == {"scores"}
    np.testing.assert_allclose(found["scores"], expected, atol=1e-5)
    assert library.fits and library.report.budget.ram == 256 * 1024


def test_cases_of_one_call_are_those_of_many(library: passfit.RunnableLibrary):
    cases = [{"image": np.full((1, 3, 32, 32), value)} for value in (0, 1.5)]  # integers and doubles are cast
    together = library.run_all(cases)
    for case, outputs in zip(cases, together, strict=True):
        np.testing.assert_array_equal(library.run(**case)["scores"], outputs["scores"])
    assert library.run_all([]) == []


def test_inputs_of_another_form_are_refused(library: passfit.RunnableLibrary):
    good = np.zeros((1, 3, 32, 32), np.float32)
    for inputs, told in (
        ({}, "The input 'image' is missing. Give image."),
        ({"imgae": good}, "Did you mean 'image'?"),
        ({"image": good[0]}, r"is float32\[3, 32, 32\]; the library takes float32\[1, 3, 32, 32\]"),
        ({"image": good.astype(complex)}, "is complex128"),
    ):
        with pytest.raises(passfit.PassfitError, match=told):
            library.run(**inputs)


@given(
    hnp.arrays(
        st.sampled_from(["int8", "uint8", "int16", "int64", "uint64", "float16", "float32", "float64", "bool"]), (3,)
    ),
    st.sampled_from(["int8", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "bool"]),
)
def test_arrays_are_cast_where_their_integers_stay_as_they_are(value: np.ndarray, dtype: str):
    port = SimpleNamespace(inputs=(ArrayPort("x", (3,), dtype),))
    wanted = numpy_dtype(dtype)
    try:
        with np.errstate(all="ignore"):
            found = passfit.RunnableLibrary._check(port, {"x": value})["x"]
    except passfit.PassfitError:
        with np.errstate(all="ignore"):
            assert value.dtype != wanted and not np.can_cast(value.dtype, wanted, "safe")
        return
    assert (found.dtype, found.shape) == (wanted, value.shape)
    if value.dtype.kind in "iub":
        np.testing.assert_array_equal(found, value)
    else:
        assert wanted.kind not in "iub"


def test_a_library_that_cannot_run_here_says_why(library: passfit.RunnableLibrary, monkeypatch: pytest.MonkeyPatch):
    from passfit.verify import runner

    opened = passfit.load(library.folder)
    monkeypatch.setattr(runner, "how_to_run", lambda target: runner.Runner(None, "not-run: no emulator"))
    with pytest.raises(passfit.PassfitError, match="not-run: no emulator. Compile it for a target"):
        opened.run(image=np.zeros((1, 3, 32, 32)))


def test_a_folder_without_a_library_is_refused(tmp_path: Path):
    with pytest.raises(passfit.PassfitError, match=r"manifest.json.*passfit compile"):
        passfit.load(tmp_path)
