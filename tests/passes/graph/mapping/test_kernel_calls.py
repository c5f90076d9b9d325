"""Calls of kernels as values: parts of tuples are the values they were made of."""

import pytest

pytest.importorskip("tvm")

from tvm import relax, topi

from passfit.passes.graph.mapping.fuse_by_mapping import FuseByMapping
from passfit.passes.graph.mapping.kernel_calls import read_calls

pytestmark = pytest.mark.tvm


def of_tuple(make, index):
    """Build relu and exp of an input, a tuple of `make(relu, exp)`, and a kernel that reads a part of it."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((4, 8), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            one, other = builder.emit_te(topi.nn.relu, x), builder.emit_te(topi.exp, x)
            part = builder.emit(relax.TupleGetItem(builder.emit(make(one, other)), index))
            part = part if isinstance(part.ty, relax.TensorType) else builder.emit(relax.TupleGetItem(part, 1))
            result = builder.emit_output(builder.emit_te(topi.tanh, part))
        builder.emit_func_output(result)
    return builder.get()


@pytest.mark.parametrize("index", [0, 1])
def test_a_part_of_a_tuple_is_the_value_it_was_made_of(index):
    called = read_calls(of_tuple(lambda one, other: relax.Tuple([one, other]), index))
    assert called.values.reads == (None, (0,), (0,), (1 + index,))


@pytest.mark.parametrize(
    "make, index",
    [
        (lambda one, other: relax.Tuple([one, other]), 1),
        (lambda one, other: relax.Tuple([one, relax.Tuple([one, other])]), 1),
    ],
)
def test_parts_of_tuples_are_fused_or_left(make, index):
    module = of_tuple(make, index)
    for objective in ("ram", "latency"):
        assert FuseByMapping(objective).apply(module)["main"] is not None
