"""Compare fusion by mapping types with the unfused kernels, over many graphs: index maps, reductions, broadcasts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .. import strategies  # noqa: F401  (the settings of hypothesis)
from ..profiles import examples

pytestmark = pytest.mark.tvm
SPECS = ("fuse-by-mapping", "fuse-by-mapping{objective=latency}", "fuse-by-mapping{objective=latency,redo=0}")
STEPS = (
    "relu", "exp", "double", "bias", "transpose", "flip", "slice", "pad", "concat", "reshape", "take", "tile", "softmax",
    "own softmax", "layer norm", "instance norm", "mean", "max pool", "conv", "depthwise", "matmul", "residual", "gate",
)  # fmt: skip


@st.composite
def graphs(draw: st.DrawFn) -> tuple[tuple[int, ...], Callable]:
    """A shape, and a body of some steps, each on planes of the shape that the step before left."""
    shape = (draw(st.sampled_from([1, 2])), *(draw(st.sampled_from([1, 2, 3, 4, 7, 16])) for _ in range(3)))
    steps = draw(st.lists(st.sampled_from(STEPS), min_size=2, max_size=6))
    axes = [draw(st.permutations(range(4))) for _ in steps]

    def body(x):
        first = x
        for number, (step, order) in enumerate(zip(steps, axes)):
            x = _step(step, x, first, list(order), number)
        return x

    return shape, body


def _step(step: str, x, first, axes: list[int], seed: int):
    """Apply one step; `axes` is a permutation of four."""
    from tvm import relax

    from ..kernels.programs import weight

    op = relax.op
    x = relax.BlockBuilder.current().emit(x) if not isinstance(x, relax.Var) else x
    extents = [int(extent) for extent in x.ty.shape]
    axis, (_, channels, height, width) = axes[0], extents

    def normed(over: list[int]):
        mean = op.mean(x, over, True)
        centred = op.subtract(x, mean)
        spread = op.mean(op.multiply(centred, centred), over, True)
        return op.divide(centred, op.sqrt(op.add(spread, relax.const(1e-2, "float32"))))

    def own_softmax():
        powers = op.exp(op.subtract(x, op.max(x, [axis], True)))
        return op.divide(powers, op.sum(powers, [axis], True))

    odd = 3 if min(height, width) > 1 else 1
    made: dict[str, Callable] = {
        "relu": lambda: op.nn.relu(x),
        "exp": lambda: op.exp(op.minimum(x, relax.const(2.0, "float32"))),
        "double": lambda: op.add(x, x),
        "bias": lambda: op.add(x, weight(channels, 1, 1, seed=seed)),
        "transpose": lambda: op.permute_dims(x, axes),
        "flip": lambda: op.flip(x, axis),
        "slice": lambda: op.strided_slice(x, [axis], [0], [(extents[axis] + 1) // 2]),
        "pad": lambda: op.nn.pad(x, [0, 0, 0, 0, 1, 0, 0, 1]),
        "concat": lambda: op.concat([x, op.negative(x)], axis),
        "reshape": lambda: op.reshape(x, [extents[each] for each in axes]),
        "take": lambda: op.take(x, relax.const(np.arange(extents[axis])[::-1].copy(), "int64"), axis=axis, mode="clip"),
        "tile": lambda: op.tile(x, [2 if each == axis else 1 for each in range(4)]),
        "softmax": lambda: op.nn.softmax(x, axis),
        "own softmax": own_softmax,
        "layer norm": lambda: normed([3]),
        "instance norm": lambda: normed([2, 3]),
        "mean": lambda: op.mean(x, axes[:2], True),
        "max pool": lambda: op.nn.max_pool2d(x, (min(2, height), min(2, width)), (2, 2)),
        "conv": lambda: op.nn.conv2d(x, weight(3, channels, odd, odd, seed=seed), padding=odd // 2),
        "depthwise": lambda: op.nn.conv2d(
            x, weight(channels, 1, odd, odd, seed=seed), padding=odd // 2, groups=channels
        ),
        "matmul": lambda: op.matmul(x, weight(width, 4, seed=seed)),
        "residual": lambda: op.add(op.nn.relu(x), x),
        "gate": lambda: op.multiply(x, op.sigmoid(op.mean(x, [2, 3], True))),
    }
    return made[step]()


@pytest.mark.parametrize("spec", SPECS)
@settings(max_examples=examples(8))
@given(graph=graphs())
def test_fusing_changes_no_result(spec: str, graph: tuple[tuple[int, ...], Callable]):
    from passfit.kernels.lower.schedule_program import schedule_program

    from ..kernels.programs import lowered, random_inputs, run

    shape, body = graph
    apart = lowered([shape], body, ("legalize",))
    inputs = random_inputs(apart)
    (expected,) = run(apart, inputs)
    together, _ = schedule_program(lowered([shape], body, ("legalize", spec)))
    (found,) = run(together, inputs)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * max(1.0, float(np.abs(expected).max())))


def _steps(spec: str, shapes, body) -> tuple[list[str], int]:
    """The kernels that a graph becomes, and their workspace."""
    from passfit.kernels.lower.schedule_program import schedule_program
    from passfit.program.workspaces import largest_workspace

    from ..kernels.programs import lowered

    scheduled, _ = schedule_program(lowered(shapes, body, ("legalize", spec)))
    return [step.kernel for step in scheduled.program.steps], largest_workspace(scheduled.program)


@pytest.mark.parametrize("name", ["own softmax", "layer norm", "instance norm"])
def test_reductions_and_their_readers_are_one_kernel_without_workspace(name: str):
    kernels, workspace = _steps(SPECS[1], [(2, 4, 8, 8)], lambda x: _step(name, x, x, [3, 2, 1, 0], 0))
    assert len(kernels) == 1 and workspace == 0
    by_rules, _ = _steps("fuse-operators", [(2, 4, 8, 8)], lambda x: _step(name, x, x, [3, 2, 1, 0], 0))
    assert len(by_rules) > 2


@pytest.mark.parametrize("name", ["transpose", "flip", "slice", "take", "reshape", "tile"])
@pytest.mark.parametrize("around", ["relu", "mean", "conv"])
def test_an_index_map_is_no_kernel_of_its_own(name: str, around: str):
    axes = [1, 0, 2, 3] if name == "transpose" else [1, 2, 3, 0]
    kernels, _ = _steps(
        SPECS[1], [(2, 4, 8, 8)], lambda x: _step(around, _step(name, x, x, axes, 0), x, [2, 3, 0, 1], 1)
    )
    assert len([each for each in kernels if each != "reshape"]) == 1


def test_a_pooling_of_disjoint_windows_goes_with_its_convolution_an_overlapping_one_does_not():
    from tvm import relax

    from ..kernels.programs import weight

    def pooled(stride: int) -> Callable:
        return lambda x: relax.op.nn.max_pool2d(relax.op.nn.conv2d(x, weight(4, 4, 3, 3)), (2, 2), (stride, stride))

    assert len(_steps(SPECS[1], [(1, 4, 10, 10)], pooled(2))[0]) == 1
    assert len(_steps(SPECS[1], [(1, 4, 10, 10)], pooled(1))[0]) == 2


@pytest.mark.parametrize("spec", SPECS)
def test_the_plan_is_no_worse_than_that_of_the_rules_by_the_same_model(spec: str):
    from passfit.passes.graph.mapping.fusion_plan import PlanSearch
    from passfit.passes.graph.mapping.group_cost import model_of
    from passfit.passes.graph.mapping.kernel_calls import read_calls
    from passfit.passes.graph.mapping.plan_account import GroupCost, evaluate_plan
    from passfit.passes.graph.mapping.scheduled_plan import existing_by_rules
    from passfit.passes.sequence.catalogue import parse_spec

    from ..kernels.programs import module_of

    steps = ["conv", "bias", "residual", "own softmax", "transpose", "matmul", "gate", "max pool"]

    def body(x):
        for number, step in enumerate(steps):
            x = _step(step, x, x, [3, 1, 0, 2], number)
        return x

    module = parse_spec("legalize").apply(module_of([(1, 4, 8, 8)], body))
    called = read_calls(module)
    assert called is not None

    def cost(group: frozenset[int]) -> GroupCost | None:
        model = model_of(called.calls, group)
        return None if model is None else GroupCost(model.time, model.workspace, model.in_place)

    by_peak = "latency" not in spec
    plan = PlanSearch(called.values, cost, by_peak=by_peak).best()
    rules = evaluate_plan(called.values, cost, existing_by_rules(module, called))
    assert rules is not None
    assert ((plan.peak, plan.time) <= (rules.peak, rules.time)) if by_peak else plan.time <= rules.time


@st.composite
def typed_graphs(draw: st.DrawFn) -> tuple[tuple[int, ...], Callable]:
    """A shape of any rank, and a body of steps in a dtype, from and to float32."""
    from tvm import relax

    op, emit = relax.op, lambda x: relax.BlockBuilder.current().emit(x)
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 5, 8]), min_size=1, max_size=5)))
    dtype = draw(st.sampled_from(["int32", "int64", "uint8", "float16", "float64", "int8"]))
    steps = draw(
        st.lists(
            st.sampled_from(("double", "sum", "max", "permute", "half", "join", "spread", "flat")),
            min_size=2,
            max_size=6,
        )
    )
    places = [draw(st.integers(0, 4)) for _ in steps]

    def step(kind: str, x, place: int):
        extents = [int(extent) for extent in x.ty.shape]
        axis = place % len(extents)
        order = [*range(axis + 1, len(extents)), *range(axis + 1)]
        made: dict[str, Callable] = {
            "double": lambda: op.add(x, x),
            "sum": lambda: op.add(x, op.sum(x, [axis], True)),
            "max": lambda: op.max(x, [axis], True),
            "permute": lambda: op.permute_dims(x, order),
            "half": lambda: op.strided_slice(x, [axis], [0], [(extents[axis] + 1) // 2]),
            "join": lambda: op.concat([x, op.maximum(x, relax.const(1, dtype))], axis),
            "spread": lambda: op.broadcast_to(x, (2, *extents)) if len(extents) < 5 else op.add(x, x),
            "flat": lambda: op.reshape(x, (extents[0], int(np.prod(extents[1:])))),
        }
        return emit(made[kind]())

    def body(x):
        x = emit(op.astype(op.clip(op.multiply(x, relax.const(2.0, "float32")), 0, 3), dtype))
        for kind, place in zip(steps, places):
            x = step(kind, x, place)
        return op.astype(x, "float32")

    return shape, body


@pytest.mark.parametrize("spec", SPECS[:2])
@settings(max_examples=examples(10))
@given(graph=typed_graphs())
def test_other_dtypes_and_ranks_keep_their_results(spec: str, graph: tuple[tuple[int, ...], Callable]):
    from passfit.kernels.lower.schedule_program import schedule_program

    from ..kernels.programs import lowered, random_inputs, run

    shape, body = graph
    apart = lowered([shape], body, ("legalize",))
    inputs = random_inputs(apart)
    (expected,) = run(apart, inputs)
    together, _ = schedule_program(lowered([shape], body, ("legalize", spec)))
    (found,) = run(together, inputs)
    np.testing.assert_allclose(found, expected, rtol=2e-2, atol=1e-2)


@pytest.mark.parametrize("spec", SPECS)
def test_rows_of_a_product_are_not_computed_with_all_between_them(spec: str):
    """Count the arithmetic of a spectrum: real and imaginary rows lie 33 apart, and a loop over both spans all between."""
    from tvm import relax

    from passfit.kernels.lower.schedule_program import schedule_program
    from passfit.targets import Machine
    from passfit.tir.counts.operation_counts import kernel_work

    from ..kernels.programs import lowered, weight

    op, emit = relax.op, lambda value: relax.BlockBuilder.current().emit(value)

    def power(x):
        y = emit(op.nn.conv1d(x, weight(66, 1, 16), strides=4))
        squares = [
            op.multiply(each, each)
            for first in (0, 33)
            for each in [emit(op.strided_slice(y, [1], [first], [first + 33]))]
        ]
        return op.sqrt(op.add(*squares))

    program, _ = schedule_program(lowered([(1, 1, 64)], power, ("legalize", spec)))
    kernels = [program.kernels[step.kernel] for step in program.program.steps]
    done = sum(each.arithmetic for kernel in kernels for each in kernel_work(kernel, Machine(lanes=1)).statements)
    assert done < 4 * 13 * 66 * 16


def test_a_product_keeps_its_tiles_before_a_reduction_over_its_plane():
    """Run no convolution as loops before the maximum over its plane: they took 80 times as long to save 1 MiB."""
    from tvm import relax

    from passfit.kernels.lower.schedule_program import schedule_program
    from passfit.kernels.rules.rule import Speed
    from passfit.kernels.schedule.candidates import schedules
    from passfit.targets import Machine

    from ..kernels.programs import lowered, weight

    def body(x):
        op, emit = relax.op, lambda value: relax.BlockBuilder.current().emit(value)
        y = emit(op.nn.conv2d(x, weight(64, 32, 5, 1)))
        return op.max(emit(op.multiply(y, op.tanh(y))), [2, 3])

    graph = lowered([(1, 32, 132, 1)], body, ("legalize", "fuse-by-mapping"))
    products = [kernel for name, kernel in graph.kernels.items() if "conv2d" in name]
    assert all(
        next(iter(schedules(kernel, frozenset({1}), Machine()).candidates())).speed < Speed.LOOPS for kernel in products
    )
    schedule_program(graph)


def test_slow_loops_of_all_groups_together_take_no_longer_than_the_kernels():
    """Leave products of integers whole that a minimum and a maximum follow: one of them in slow loops would do, not all."""
    from onnx import TensorProto, helper

    from passfit.frontend.canonicalise import canonicalize
    from passfit.frontend.relax.to_relax import to_relax
    from passfit.kernels.rules.rule import Speed
    from passfit.kernels.schedule.candidates import schedules
    from passfit.passes.sequence.catalogue import parse_spec
    from passfit.passes.sequence.replay import lower_by_sequence
    from passfit.passes.sequence.sequence import Sequence
    from passfit.targets import Machine

    from ..models import model_of

    sizes, nodes, weights, last = (37, 64, 33, 7), [], {}, "x"
    for number, (before, after) in enumerate(pairwise(sizes)):
        weights[f"w{number}"] = np.random.default_rng(number).integers(-128, 128, (before, after)).astype(np.int8)
        q, s, z, t, f, y = (f"{letter}{number}" for letter in "qsztfy")
        nodes += [
            helper.make_node("DynamicQuantizeLinear", [last], [q, s, z]), helper.make_node("MatMulInteger", [q, f"w{number}", z], [t]),
            helper.make_node("Cast", [t], [f], to=TensorProto.FLOAT), helper.make_node("Mul", [f, s], [y]),
        ]  # fmt: skip
        last = y
    model = canonicalize(model_of(nodes, {"x": (5, 37)}, [last], weights))
    sequence = Sequence(tuple(map(parse_spec, ("legalize", "fuse-by-mapping"))))
    lowered = lower_by_sequence(sequence, to_relax(model), model, "products", Machine())
    products = [lowered.kernels[step.kernel] for step in lowered.program.steps if "matmulinteger" in step.kernel]
    slow = [
        each
        for each in products
        if next(iter(schedules(each, frozenset({1}), Machine()).candidates())).speed is Speed.LOOPS
    ]
    assert len(products) >= 3 and len(slow) <= 1
