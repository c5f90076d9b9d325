"""Keys of states: equal for equal structures alone, also where TVM's hash collides."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm_ffi
from tvm import relax
from tvm.ir import IRModule

from passfit.frontend.relax.to_relax import to_relax
from passfit.passes.sequence.catalogue import parse_spec
from passfit.search.evaluate.state_key import StateKeys, state_key

from ..test_search import network

pytestmark = pytest.mark.tvm


def graph(
    shape: tuple[int, ...], *weights: np.ndarray, name: str = "x", keepdims: bool = True, axis: int | None = 0
) -> IRModule:
    """Sum a tensor over an axis or all, after adding each of the weights."""
    builder, value = relax.BlockBuilder(), relax.Var(name, relax.TensorType(shape, "float32"))
    with builder.function("main", [value]):
        with builder.dataflow():
            for weight in weights:
                value = builder.emit(relax.op.add(value, relax.const(weight)))
            result = builder.emit_output(relax.op.sum(value, axis=axis, keepdims=keepdims))
        builder.emit_func_output(result)
    return builder.get()


def test_shapes_of_one_hash_are_told_apart():
    graphs = [graph((rows, columns), axis=None) for rows in range(1, 12) for columns in range(1, 80)]
    hashes = {tvm_ffi.structural_hash(each) for each in graphs}
    assert len(hashes) < len(graphs), "TVM's hash no longer collides: another example is needed"
    assert len(set(map(state_key, graphs))) == len(graphs)


def test_attributes_and_names_of_kernels_count_and_names_of_variables_do_not():
    reference = state_key(graph((2, 2)))
    assert reference == state_key(graph((2, 2), name="y"))
    assert reference != state_key(graph((2, 2), axis=1))
    assert reference != state_key(graph((2, 2), keepdims=False))


def test_of_the_values_of_constants_their_equality_counts():
    one, two, three = (np.full(2, value, "float32") for value in (1, 2, 3))
    assert state_key(graph((2, 2), one, two)) == state_key(graph((2, 2), three, one))
    assert state_key(graph((2, 2), one, two)) != state_key(graph((2, 2), one, one))


def test_keys_do_not_depend_on_what_was_seen_before():
    keys, module = StateKeys(), to_relax(network(["conv", "bn", "Relu"]))
    for spec in ("legalize", "fuse-operators", "dead-code-elimination"):
        module = parse_spec(spec).apply(module)
        assert keys.key(module) == keys.key(module) == state_key(module)
