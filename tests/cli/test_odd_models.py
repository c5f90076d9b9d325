"""Test odd models: refused in one line, without files; by night, all of them in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ..odd_models import odd_models

ODD = {odd.name: odd for _, odd in odd_models()}
#: what ONNX Runtime's telemetry leaves in TMPDIR when it is imported
FOREIGN = frozenset({".ses"})
#: seconds after which a compilation hangs; the longest takes half a minute
HANGS = 900
#: one or more of each way to be wrong, each with a part of what is said
SAID = {
    "a file of a PNG": "not an ONNX model", "a file of lengths without end": "cut short", "a folder": "directory", "a FIFO": "regular file",
    "a link to itself": "symbolic links", "a name of 5000 letters": "too long", "an empty name": "empty", "cnn, cut to 68 bytes": "odd.onnx",
    "a cycle": "cycle", "a node that reads itself": "cycle", "a value nobody makes": "ghost", "an output nobody makes": "ghost",
    "two nodes make one value": "already", "no outputs": "no graph with outputs", "an unknown domain": "'my'", "no operator": "operator",
    "no opset": "operator set", "opset -1": "", "a function that calls itself": "Cycle",
    "an If without branches": "then_branch", "an If that reads a ghost": "ghost", "a Loop of 2^62": "Loop", "a side file outside": "outside",
    "a side file a link outside": "link", "a side file of 2^62 bytes": "side file", "dtype COMPLEX64": "complex64", "dtype STRING": "string", "dtype 99": "",
    "an input that is a map": "", "an input that is a optional": "not a tensor", "an input of 4611686018427387904x4": "GiB",
    "an input of 4294967296x4294967296": "GiB", "an input of 4x-1": "open", "weights of no data": "", "weights of 2^62 rows": "GiB",
    "weights of a negative size": "", "Tile by [4611686018427387904, 2]": "", "a long range": "Range", "names that are nothing": "",
    "two dtypes in an addition": "Add", "Softmax with axis 99": "", "Cast with dtype 99": "",
    "Gather with index 99": "from -1 to 0", "Resize by [1, 1, nan, 1]": "Resize",
    "Softmax with a text for an axis": "'axis' of type STRING, not INT",
}  # fmt: skip
#: refused by TVM's importer, which takes a second to import
BY_TVM = {"Reshape by [7, 7]": "Reshape", "Conv with group of 0": "group=0", "LRN with size 0": "LRN"}


def refusal(refused: Callable[..., str], folder: Path, name: str) -> str:
    odd = ODD[name]
    return refused("compile", "--target", "x86-64", "--out", "out", *odd.options, "--", odd.write(folder))


@pytest.mark.parametrize("name", SAID)
def test_an_odd_model_is_refused(refused, tmp_path, name):
    assert SAID[name] in refusal(refused, tmp_path, name)


@pytest.mark.tvm
@pytest.mark.parametrize("name", BY_TVM)
def test_an_odd_node_is_refused_without_a_word_of_tvms(refused, tmp_path, name):
    assert BY_TVM[name] in refusal(refused, tmp_path, name)


def test_the_set_is_the_same_every_time(tmp_path):
    """Check the size as well: 132 models were asked for."""
    again = [(group, odd.name) for group, odd in odd_models()]
    assert again == [(group, odd.name) for group, odd in odd_models()]
    assert len(again) == len(set(again)) >= 132
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        for name in ("cnn, cut to 68 bytes", "an If", "weights of nan"):
            if name in ODD:
                ODD[name].write(folder)
                (folder / "odd.onnx").rename(folder / f"{name}.onnx")
    one, two = ({f.name: f.read_bytes() for f in (tmp_path / each).iterdir()} for each in ("one", "two"))
    assert one == two and len(one) > 1


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.name not in FOREIGN}


@pytest.mark.nightly
@pytest.mark.parametrize("name", ODD)
def test_an_odd_model_compiles_or_is_refused(tmp_path, name):
    odd, work, scratch = ODD[name], tmp_path / "work", tmp_path / "tmp"
    work.mkdir()
    scratch.mkdir()
    argument = odd.write(work)
    before = files(work)
    command = [sys.executable, "-m", "passfit.cli", "compile", "--target", "x86-64", "--out", "out", *odd.options]
    environment = {key: value for key, value in os.environ.items() if key != "PASSFIT_STRICT"}
    done = subprocess.run(
        [*command, "--", argument], cwd=work, env=environment | {"TMPDIR": str(scratch)}, stdin=subprocess.DEVNULL,
        capture_output=True, errors="replace", timeout=HANGS, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 2), done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 0 or len(done.stderr.splitlines()) == 1, done.stderr
    assert files(scratch) == set()
    left = files(work) - before
    assert not left if done.returncode else all(each.startswith("out") for each in left)
