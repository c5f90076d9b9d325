"""Dequantisation moves into every reader, constants stay as they are, and other graphs stay the same object."""

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm_ffi
from tvm import relax
from tvm.ir import IRModule

from passfit.passes.graph.legalize import Legalize
from passfit.passes.graph.quantised.inline_dequantisation import inline_dequantisation, widens

pytestmark = pytest.mark.tvm
SHAPE = (2, 6)


def graph(body, dtype="int8") -> IRModule:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(SHAPE, dtype))
    with builder.function("main", [x]):
        with builder.dataflow():
            result = builder.emit_output(body(builder, x))
        builder.emit_func_output(result)
    return builder.get()


def dequantized(builder, x):
    scale, zero = relax.const(np.float32(0.5)), relax.const(np.int8(3))
    return builder.emit(relax.op.dequantize(x, scale, zero, axis=0, out_dtype="float32"))


def calls(module):
    """Return the dtypes of operands and result of each kernel call."""
    found = []
    for block in module["main"].body.blocks:
        for binding in block.bindings:
            if isinstance(binding.value, relax.Call):
                operands = [str(each.ty.dtype) for each in binding.value.args[1].fields]
                found.append((operands, str(binding.value.ty.dtype)))
    return found


def test_each_reader_dequantises_for_itself():
    def body(builder, x):
        wide = dequantized(builder, x)
        return builder.emit(relax.op.add(builder.emit(relax.op.exp(wide)), builder.emit(relax.op.sqrt(wide))))

    assert calls(Legalize().apply(graph(body))) == [
        (["int8"], "float32"),
        (["int8"], "float32"),
        (["float32"] * 2, "float32"),
    ]


def test_a_reader_written_as_loops_reads_a_float_copy_and_others_dequantise():
    def body(builder, x):
        wide = dequantized(builder, x)
        return builder.emit(relax.op.add(builder.emit(relax.op.cumsum(wide, 1)), builder.emit(relax.op.exp(wide))))

    assert calls(Legalize().apply(graph(body))) == [
        (["int8"], "float32"),
        (["float32"], "float32"),
        (["int8"], "float32"),
        (["float32"] * 2, "float32"),
    ]


def test_a_weight_stays_narrow_though_it_is_moved_first():
    weight = relax.const(np.arange(24, dtype=np.int8).reshape(4, 6))

    def body(builder, x):
        turned = builder.emit(relax.op.permute_dims(dequantized(builder, weight)))
        return builder.emit(relax.op.matmul(x, turned))

    module = Legalize().apply(graph(body, "float32"))
    assert calls(module) == [(["int8", "float32"], "float32")]


def test_a_result_that_is_only_dequantised_keeps_its_kernel():
    assert calls(Legalize().apply(graph(dequantized))) == [(["int8"], "float32")]


def test_a_graph_without_narrow_numbers_is_the_same_object():
    module = Legalize().apply(graph(lambda builder, x: builder.emit(relax.op.exp(x)), "float32"))
    assert inline_dequantisation(module).same_as(module)


def test_its_argument_is_left_as_it_is():
    module = relax.transform.LegalizeOps()(
        graph(lambda builder, x: builder.emit(relax.op.exp(dequantized(builder, x))))
    )
    before = tvm_ffi.structural_hash(module)
    assert not inline_dequantisation(module).same_as(module)
    assert tvm_ffi.structural_hash(module) == before


def test_form_tells_what_widens():
    module = relax.transform.LegalizeOps()(
        graph(lambda builder, x: builder.emit(relax.op.exp(dequantized(builder, x))))
    )
    kernels = {var.name_hint: function for var, function in module.functions.items() if var.name_hint != "main"}
    assert [name for name, kernel in kernels.items() if widens(kernel)] == ["dequantize"] and len(kernels) == 2
