"""Compare transposed convolutions, lowered and scheduled by phases, with ONNX Runtime: whole, and by rows."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import onnx
import pytest

pytest.importorskip("tvm")

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import helper
from tvm import relax

from passfit import api
from passfit.frontend.imported_model import load
from passfit.kernels.lower.schedule_program import schedule_program
from passfit.passes.sequence.catalogue import parse_spec
from passfit.passes.sequence.sequence import Sequence
from passfit.targets import Machine, get_target
from passfit.tir.loop_nests import iterations

from ....kernels.programs import lowered, random_inputs, run
from ....kernels.windows import Single, check_windows
from ....models import model_of, save
from ....models import run as run_onnx
from ....profiles import examples

pytestmark = pytest.mark.tvm

_MACHINES = (
    Machine(), Machine(lanes=4, registers=32, by_element=True), Machine(lanes=1, compact=True),
    Machine(lanes=16, registers=8, lmul=4, by_element=True),
)  # fmt: skip
_OPERATORS = (relax.op.nn.conv1d_transpose, relax.op.nn.conv2d_transpose, relax.op.nn.conv3d_transpose)
#: taps, stride, dilation, padding before and behind, elements added behind
_AXIS = st.tuples(
    st.integers(1, 7), st.sampled_from([1, 2, 2, 3, 4, 6, 8]), st.sampled_from([1, 1, 1, 2, 3, 4]), st.integers(0, 4),
    st.integers(0, 4), st.integers(0, 2),
)  # fmt: skip


def _case(shape, filters, groups, axes):
    """Return the kernel as a program, with a clamp behind it, and the same as a model."""
    taps, strides, dilations, before, behind, extra = (list(each) for each in zip(*axes))
    weight = np.random.default_rng(3).standard_normal((shape[1], filters, *taps)).astype("float32")

    def body(x):
        result = _OPERATORS[len(axes) - 1](
            x, relax.const(weight), strides=strides, padding=[*before, *behind], output_padding=extra,
            dilation=dilations, groups=groups,
        )  # fmt: skip
        return relax.op.nn.relu(result)

    node = helper.make_node(
        "ConvTranspose", ["x0", "w"], ["c"], kernel_shape=taps, strides=strides, pads=[*before, *behind],
        output_padding=extra, dilations=dilations, group=groups,
    )  # fmt: skip
    model = model_of([node, helper.make_node("Relu", ["c"], ["y"])], {"x0": shape}, ["y"], {"w": weight})
    return lowered([shape], body), model


def _result(extent, axis):
    taps, stride, dilation, before, behind, extra = axis
    return (extent - 1) * stride + dilation * (taps - 1) + 1 - before - behind + extra


@settings(max_examples=examples(15))
@given(
    st.integers(1, 2), st.integers(1, 3), st.integers(1, 3), st.sampled_from([1, 2, 8, 12]), st.integers(1, 3),
    st.data(), st.sampled_from(_MACHINES),
)  # fmt: skip
def test_results_are_those_of_onnx_runtime(batch, groups, taken, filters, rank, data, machine):
    axes = [data.draw(_AXIS) for _ in range(rank)]
    plane = [data.draw(st.integers(1, 9 if rank < 3 else 4)) for _ in range(rank)]
    assume(all(extra < max(stride, dilation) and extra < stride for _, stride, dilation, _, _, extra in axes))
    assume(all(0 < _result(*each) < 80 for each in zip(plane, axes)))
    program, model = _case((batch, groups * taken, *plane), filters, groups, axes)
    scheduled, _ = schedule_program(replace(program, machine=machine))
    inputs = random_inputs(program)
    (expected,) = run_onnx(model, {"x0": inputs[0]})
    for each in (program, scheduled):
        (result,) = run(each, inputs)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


@settings(max_examples=examples(15))
@given(_AXIS, st.integers(1, 9), st.data())
def test_nan_reaches_the_results_of_onnx_runtime(axis, extent, data):
    assume(axis[5] < axis[1] and 0 < _result(extent, axis) < 80)
    program, model = _case((1, 2, extent), 2, 1, [axis])
    (values,) = random_inputs(program)
    values[0, data.draw(st.integers(0, 1)), data.draw(st.integers(0, extent - 1))] = np.nan
    (result,), (expected,) = run(schedule_program(program)[0], [values]), run_onnx(model, {"x0": values})
    np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))


@pytest.mark.parametrize(
    "axes",
    [
        [(3, 3, 2, 1, 1, 0)] * 2,
        [(4, 2, 2, 0, 0, 0)] * 2,
        [(4, 2, 1, 1, 1, 0)] * 2,
        [(3, 2, 1, 1, 1, 0)] * 2,
        [(2, 2, 1, 0, 0, 0)] * 2,
        [(16, 8, 1, 4, 4, 0)],
        [(5, 3, 1, 0, 2, 1)],
    ],
)
def test_rows_of_a_result_are_those_of_the_whole(axes):
    program, _ = _case((1, 3, *(6, 5)[: len(axes)]), 2, 1, axes)
    single = Single(program)
    assert len(single.rows()) >= len(axes)
    check_windows(single)


@pytest.mark.parametrize(
    ("axis", "met"),
    [
        ((4, 2, 1, 1, 1, 0), 2),
        ((3, 3, 2, 1, 1, 1), 1),
        ((3, 1, 2, 2, 2, 0), 3),
        ((6, 4, 2, 0, 0, 0), 3),
        ((5, 2, 3, 0, 0, 1), 3),
    ],
)
def test_no_zero_is_multiplied(axis, met):
    program, _ = _case((1, 16, 10, 10), 8, 1, [axis] * 2)
    (kernel,) = program.kernels.values()
    assert iterations(kernel.body) <= (16 * met**2 + 1) * 8 * _result(10, axis) ** 2


def _decoder():
    """Return a model of three layers: phases along rows, along vectors, and of different numbers of taps."""
    layers = ((12, (3, 2), (2, 2), (1, 0)), (9, (4, 4), (2, 2), (1, 1)), (3, (5, 24), (3, 8), (0, 8)))
    nodes, constants, channels = [], {}, 6
    random = np.random.default_rng(5)
    for number, (filters, taps, *_) in enumerate(layers):
        constants[f"w{number}"] = random.standard_normal((channels, filters, *taps)).astype("float32")
        channels = filters
    names = ["x", *(f"t{number}" for number in range(len(layers) - 1)), "y"]
    for number, ((_, taps, strides, pads), (read, written)) in enumerate(zip(layers, pairwise(names))):
        nodes.append(
            helper.make_node(
                "ConvTranspose",
                [read, f"w{number}"],
                [written],
                kernel_shape=taps,
                strides=strides,
                pads=[*pads, *pads],
            )
        )
    return onnx.shape_inference.infer_shapes(model_of(nodes, {"x": (2, 6, 3, 4)}, ["y"], constants))


@pytest.mark.parametrize("name", ["x86-64", "rpi4"])
def test_a_library_computes_what_onnx_runtime_does(tmp_path, name):
    file = save(_decoder(), tmp_path)
    passes = ("simplify", "legalize", "fold-constant", "fuse-operators", "order")
    report = api.compile_imported(
        load(file, "decoder"), get_target(name), out=tmp_path / "out",
        sequence=Sequence(tuple(map(parse_spec, passes))),
    )  # fmt: skip
    if not report.measured.ran:
        pytest.skip(report.measured.how)
    assert report.measured.max_rel_error <= 1e-5
