"""Test the refusal of odd models: one line, and no files; benchmarks/odd_models.py compiles the others too."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import odd_models

sys.path.pop(0)

REFUSED = {odd.name: odd for _, odd in odd_models.odd_models()}
#: one or more of each way to be wrong, each with a part of what is said
SAID = {
    "a file of a PNG": "not an ONNX model", "a file of lengths without end": "cut short", "a folder": "directory", "a FIFO": "regular file",
    "a link to itself": "symbolic links", "a name of 5000 letters": "too long", "an empty name": "empty", "cnn, cut to 68 bytes": "odd.onnx",
    "a cycle": "cycle", "a node that reads itself": "cycle", "a value nobody makes": "ghost", "an output nobody makes": "ghost",
    "two nodes make one value": "order", "no outputs": "no graph with outputs", "an unknown domain": "'my'", "no operator": "operator",
    "no opset": "operator set", "opset -1": "", "sparse weights": "sparse", "a function that calls itself": "Cycle",
    "an If without branches": "then_branch", "an If that reads a ghost": "ghost", "a Loop of 2^62": "Loop", "a side file outside": "outside",
    "a side file a link outside": "link", "a side file of 2^62 bytes": "side file", "dtype BFLOAT16": "bfloat16", "dtype STRING": "string", "dtype 99": "",
    "an input that is a map": "", "an input that is a optional": "not a tensor", "an input of 4611686018427387904x4": "GiB",
    "an input of 4294967296x4294967296": "GiB", "an input of 4x-1": "open", "weights of no data": "", "weights of 2^62 rows": "GiB",
    "weights of a negative size": "", "Tile by [4611686018427387904, 2]": "", "a long range": "Range", "names that are nothing": "",
    "two dtypes in an addition": "Add", "Softmax with axis 99": "", "Cast with dtype 99": "",
    "Gather with index 99": "from -1 to 0",
}  # fmt: skip
#: refused by TVM's importer, which takes a second to import
BY_TVM = {"Reshape by [7, 7]": "Reshape", "Conv with group of 0": "group=0", "LRN with size 0": "LRN"}


def refusal(refused: Callable[..., str], folder: Path, name: str) -> str:
    odd = REFUSED[name]
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
    again = [(group, odd.name) for group, odd in odd_models.odd_models()]
    assert again == [(group, odd.name) for group, odd in odd_models.odd_models()]
    assert len(again) == len(set(again)) >= 132
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        for name in ("cnn, cut to 68 bytes", "an If", "weights of nan"):
            if name in REFUSED:
                REFUSED[name].write(folder)
                (folder / "odd.onnx").rename(folder / f"{name}.onnx")
    one, two = ({f.name: f.read_bytes() for f in (tmp_path / each).iterdir()} for each in ("one", "two"))
    assert one == two and len(one) > 1
