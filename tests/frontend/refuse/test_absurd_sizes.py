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


N = 30_000
SIZE, ONE, NOTHING = np.int64([N, N]), np.float32([[1]]), np.int64(0)
#: nodes that make a constant `b` of N × N numbers, and what they read
CONSTANTS = {
    "ConstantOfShape": ([("ConstantOfShape", "s")], {"s": SIZE}),
    "Expand": ([("Expand", "v", "s")], {"v": ONE, "s": SIZE}),
    "Tile": ([("Tile", "v", "s")], {"v": ONE, "s": SIZE}),
    "Pad": ([("Pad", "v", "s")], {"v": ONE, "s": np.int64([0, 0, N, N])}),
    "Add": ([("Add", "v", "w")], {"v": np.zeros((N, 1), np.float32), "w": np.zeros((1, N), np.float32)}),
    "OneHot": ([("OneHot", "i", "d", "v")], {"i": np.zeros(N, np.int64), "d": np.int64(N), "v": np.float32([0, 1])}),
    "Resize": ([("Resize", "v", "", "z")], {"v": ONE, "z": np.float32([N, N])}),
    "Range": ([("Range", "o", "n", "d"), ("Reshape", "", "s")], {"o": NOTHING, "n": np.int64(N * N), "d": np.int64(1), "s": SIZE}),
    "of a computed shape": (
        [("Shape", "x"), ("Mul", "", "k"), ("ConstantOfShape", "")],
        {"k": np.int64([N // 2, N // 3])},
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", CONSTANTS)
def test_a_large_constant_is_refused_before_it_is_computed(tmp_path, form):
    """Though what is read of it is small: import computed it whole, for minutes."""
    given, constants = CONSTANTS[form]
    nodes = []
    for number, (op, *operands) in enumerate(given):  # an operand without a name is the result before
        names = [each or (nodes[-1].output[0] if op != "Resize" else "") for each in operands]
        nodes.append(helper.make_node(op, names, [f"b{number}"], name=op))
    nodes += [helper.make_node("ReduceMax", [nodes[-1].output[0]], ["r"], keepdims=0), helper.make_node("Cast", ["r"], ["f"], to=FLOAT),
              helper.make_node("Add", ["x", "f"], ["y"])]  # fmt: skip
    weights = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    with pytest.raises(ModelError, match=r"GiB is the most|makes more than 1 GiB"):
        import_model(saved(tmp_path / "m.onnx", nodes, (2, 3), weights))


def test_a_tensor_of_bounded_length_is_refused_before_a_rewrite_computes_with_it(tmp_path):
    nodes = [
        helper.make_node("NonZero", ["x"], ["places"]),
        helper.make_node("OneHot", ["places", "depth", "values"], ["hot"], axis=0),
        helper.make_node("ReduceMax", ["hot"], ["y"], axes=[0], keepdims=0),
    ]
    weights = {"depth": np.int64(1 << 47), "values": np.float32([0, 1])}
    with pytest.raises(ModelError, match="tensor 'hot' takes .* GiB"):
        import_model(saved(tmp_path / "m.onnx", nodes, [4], weights))
