"""Check that absurd sizes are refused by name, before anything is computed with them."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from passfit.errors import ModelError
from passfit.frontend.canonicalise import import_model
from passfit.frontend.refuse.absurd_sizes import PORT_LIMIT, refuse_large_tensors

from ...models import model_of

FLOAT = TensorProto.FLOAT


def saved(path, nodes, shape, weights=()):
    path.write_bytes(model_of(nodes, {"x": shape}, ["y"], weights).SerializeToString())
    return path


@given(st.lists(st.integers(1, 2**63 - 1), min_size=1, max_size=6))
def test_an_input_is_refused_where_it_takes_more_than_a_program_addresses(shape):
    model = model_of([], {"x": shape}, [])
    nbytes = 4
    for size in shape:
        nbytes *= size
    if nbytes <= PORT_LIMIT:
        refuse_large_tensors(model)
    else:
        with pytest.raises(ModelError, match="input 'x'"):
            refuse_large_tensors(model)


@pytest.mark.parametrize("shape", [(2**62, 4), (2**32, 2**32), (2**63 - 1,), (2**31, 2), (1 << 29,)])
def test_an_absurd_input(tmp_path, shape):
    with pytest.raises(ModelError, match="input 'x' takes .* GiB"):
        import_model(saved(tmp_path / "m.onnx", [helper.make_node("Relu", ["x"], ["y"])], shape))


def test_an_output_that_grows_absurdly(tmp_path):
    nodes = [helper.make_node("Tile", ["x", "n"], ["y"])]
    counts = numpy_helper.from_array(np.array([2**40]), "n")
    with pytest.raises(ModelError, match="output 'y' takes"):
        import_model(saved(tmp_path / "m.onnx", nodes, (2,), [counts]))


@pytest.mark.parametrize("constants", [True, False], ids=["initializers", "constant nodes"])
def test_a_range_that_inference_would_write_out(tmp_path, constants):
    numbers = [numpy_helper.from_array(np.array(each), name) for name, each in (("a", 0), ("b", 2**40), ("c", 1))]
    nodes = [helper.make_node("Range", ["a", "b", "c"], ["r"], name="count"), helper.make_node("Cast", ["r"], ["f"], to=FLOAT),
             helper.make_node("Add", ["f", "x"], ["y"])]  # fmt: skip
    if not constants:
        nodes = [*(helper.make_node("Constant", [], [each.name], value=each) for each in numbers), *nodes]
    started = time.monotonic()
    with pytest.raises(ModelError, match="Range node 'count'"):
        import_model(saved(tmp_path / "m.onnx", nodes, (1,), numbers if constants else ()))
    assert time.monotonic() - started < 60
