"""Keep loops, long or not, and compare them with the nodes as given: by ONNX Runtime, and by the kernels made of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from passfit.frontend.canonical.control_flow import long_loops
from passfit.frontend.canonicalise import import_model

from ....models import model_of, run, save
from .test_unroll_loops import (
    BOOL,
    FLOAT,
    HALF,
    INT,
    ROWS,
    STEP,
    body,
    counting_loop,
    loop_of,
    nested_step,
    node,
    scan_along,
)

VALUES = {"x": ROWS, "h0": ROWS[0] * 2, "outer": ROWS[1] / 2}
PORTS = {name: list(value.shape) for name, value in VALUES.items()}


@pytest.fixture(autouse=True)
def _all_loops_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_loops, "LONG", 1)


def kept(model: onnx.ModelProto, folder: Path, scans: int = 1) -> onnx.ModelProto:
    """Compare the imported model and its kernels with `model`; return the imported one."""
    from passfit.frontend.relax.to_relax import to_relax
    from passfit.passes.sequence.replay import replay
    from passfit.passes.sequence.sequence import TVM_DEFAULT, Sequence

    from ....kernels.programs import run as run_kernels

    given = {port.name: VALUES[port.name] for port in model.graph.input}
    imported = import_model(save(model, folder))
    assert [each.op_type for each in imported.graph.node].count("Scan") == scans
    expected = run(model, given)
    lowered, _ = replay(Sequence.parse(TVM_DEFAULT), to_relax(imported), imported, "loop")
    for found in (run(imported, given), run_kernels(lowered, list(given.values()))):
        for got, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
    return imported


def looped(
    nodes: Sequence[onnx.NodeProto], ports: Sequence[str] = ("x", "h0"), trips: int = 4, **constants: np.ndarray
) -> onnx.ModelProto:
    """A model of one Loop with a state and a row of each iteration."""
    loop = node("Loop", "m _ h0", "h y", body=loop_of(nodes, half=HALF, **constants))
    return model_of(
        [loop], {name: PORTS[name] for name in ports}, ["h", "y"], {"m": np.asarray(trips, np.int64)}, opset=17
    )


@pytest.mark.tvm
def test_a_loop_is_one_kernel(tmp_path: Path) -> None:
    kept(looped(STEP), tmp_path)


@pytest.mark.tvm
def test_importing_a_kept_loop_again_changes_nothing(tmp_path: Path) -> None:
    once = import_model(save(looped(STEP), tmp_path))
    again = import_model(save(once, tmp_path))
    assert [each.op_type for each in again.graph.node] == [each.op_type for each in once.graph.node]
    for got, wanted in zip(
        run(again, {k: VALUES[k] for k in ("x", "h0")}), run(once, {k: VALUES[k] for k in ("x", "h0")}), strict=True
    ):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.tvm
def test_values_from_outside_are_read_in_each_iteration(tmp_path: Path) -> None:
    """One is computed, one an input, one a constant; the state is read twice."""
    nodes = [
        node("Gather", "x i", "xi", axis=0),
        node("Mul", "h scale", "less"),
        node("Sum", "less xi outer h", "h2"),
        node("Sub", "h2 half", "row"),
    ]
    model = looped(nodes, ("x", "h0", "outer"))
    model.graph.node.insert(0, node("Sigmoid", "outer", "scale"))
    imported = kept(model, tmp_path)
    (scan,) = (each for each in imported.graph.node if each.op_type == "Scan")
    assert len(scan.input) == 1 + 3 + 1  # the state, what no iteration changes, the numbers of the iterations


@pytest.mark.tvm
def test_states_may_change_places(tmp_path: Path) -> None:
    """Each new state is the old other one: copied one after the other, one would be lost."""
    step = body(
        [node("Identity", "b", "a2"), node("Add", "a xi", "b2"), node("Identity", "a", "row")],
        {"a": (FLOAT, [2, 3]), "b": (FLOAT, [2, 3]), "xi": (FLOAT, [2, 3])},
        {"a2": (FLOAT, [2, 3]), "b2": (FLOAT, [2, 3]), "row": (FLOAT, [2, 3])},
    )  # fmt: skip
    scan = node("Scan", "h0 outer x", "a3 b3 y", body=step, num_scan_inputs=1)
    kept(model_of([scan], PORTS, ["a3", "b3", "y"], {}, opset=17), tmp_path)


@pytest.mark.tvm
def test_a_counter_is_a_state_without_axes(tmp_path: Path) -> None:
    loop = counting_loop([node("Gather", "x n", "xi", axis=0), *STEP[1:]])
    constants = {"n0": np.asarray(1, np.int64), "most": np.asarray(4, np.int64)}
    kept(model_of([loop], {each: PORTS[each] for each in ("x", "h0")}, ["h", "y"], constants, opset=17), tmp_path)


@pytest.mark.tvm
def test_a_row_may_be_the_state_a_slice_or_another_row(tmp_path: Path) -> None:
    step = body(
        [node("Add", "a xi", "a2"), node("Identity", "a2", "row"), node("Identity", "a2", "same"), node("Identity", "xi", "slice")],
        {"a": (FLOAT, [2, 3]), "xi": (FLOAT, [2, 3])},
        {name: (FLOAT, [2, 3]) for name in ("a2", "row", "same", "slice")},
    )  # fmt: skip
    scan = node("Scan", "h0 x", "a3 y z w", body=step, num_scan_inputs=1, scan_output_directions=[0, 1, 1])
    kept(model_of([scan], {each: PORTS[each] for each in ("x", "h0")}, ["a3", "y", "z", "w"], {}, opset=17), tmp_path)


@pytest.mark.tvm
@pytest.mark.parametrize("axis", [0, 2])
@pytest.mark.parametrize("directions", [(0, 0), (1, 0), (0, 1)])
def test_a_scan_runs_along_any_axis_both_ways(tmp_path: Path, axis: int, directions: tuple[int, int]) -> None:
    scan, row = scan_along(axis, directions)
    kept(model_of([scan], {"x": PORTS["x"]}, ["h", "y"], {"zero": np.ones(row, np.float32)}, opset=17), tmp_path)


@pytest.mark.tvm
def test_loops_and_branches_may_stand_in_a_loop(tmp_path: Path) -> None:
    kept(looped(nested_step(), two=np.asarray(2, np.int64)), tmp_path)


@pytest.mark.tvm
def test_a_loop_whose_state_grows_is_unrolled(tmp_path: Path) -> None:
    step = body(
        [node("Concat", "h h", "h2", axis=0)], {"i": (INT, []), "on": (BOOL, []), "h": (FLOAT, None)},
        {"on": (BOOL, []), "h2": (FLOAT, None)},
    )  # fmt: skip
    loop = node("Loop", "m _ h0", "h", body=step)
    imported = kept(
        model_of([loop], {"h0": PORTS["h0"]}, ["h"], {"m": np.asarray(3, np.int64)}, opset=17), tmp_path, scans=0
    )
    assert imported.graph.output[0].type.tensor_type.shape.dim[0].dim_value == 16


@pytest.mark.tvm
def test_a_loop_is_kept_once_the_loop_before_it_tells_the_shape_of_its_state(tmp_path: Path) -> None:
    """ONNX's inference tells no shapes of states."""
    model = looped(STEP)
    model.graph.node.append(node("Loop", "m _ h", "g z", body=loop_of(STEP, half=HALF)))
    model.graph.output.append(helper.make_tensor_value_info("g", FLOAT, [2, 3]))
    kept(model, tmp_path, scans=2)


@pytest.mark.tvm
@pytest.mark.parametrize("read", ["v", "ix", "v ix"])
def test_a_loop_with_a_topk_is_kept(tmp_path: Path, read: str) -> None:
    """TVM's own rule would call its runtime. A result nobody reads is a value of the body alone."""
    nodes = [node("Gather", "x i", "xi", axis=0), node("Add", "h xi", "s"), node("TopK", "s three", "v ix", axis=1)]
    nodes += [node("Cast", each, f"{each}_float", to=FLOAT) for each in read.split()]
    nodes += [
        node("Concat", " ".join(f"{each}_float" for each in read.split()), "all", axis=1),
        node("ReduceSum", "all one", "t"),
    ]
    nodes += [node("Sub", "s t", "h2"), node("Tanh", "h2", "row")]
    kept(looped(nodes, one=np.asarray([1], np.int64), three=np.asarray([3], np.int64)), tmp_path)


@pytest.mark.tvm
def test_a_quantised_body_is_kept(tmp_path: Path) -> None:
    nodes = [
        node("Gather", "x i", "xi", axis=0), node("QuantizeLinear", "h half", "q"), node("DequantizeLinear", "q half", "g"),
        node("Add", "g xi", "h2"), node("Neg", "h2", "row"),
    ]  # fmt: skip
    kept(looped(nodes), tmp_path)


@pytest.mark.tvm
def test_a_product_in_a_loop_is_tiled(tmp_path: Path) -> None:
    """A tile of the body's product keeps its sums in registers and reads repacked weights."""
    from passfit.frontend.relax.to_relax import to_relax
    from passfit.kernels.schedule.candidates import schedules
    from passfit.kernels.weights.repack import repackable_parameters
    from passfit.passes.sequence.replay import lower_by_sequence
    from passfit.passes.sequence.sequence import TVM_DEFAULT, Sequence
    from passfit.targets import Machine

    weights = np.random.default_rng(5).standard_normal((64, 64)).astype(np.float32) / 8
    step = body(
        [node("MatMul", "h w", "p"), node("Add", "p xi", "s"), node("Tanh", "s", "h2"), node("Identity", "h2", "row")],
        {"h": (FLOAT, [1, 64]), "xi": (FLOAT, [1, 64])}, {"h2": (FLOAT, [1, 64]), "row": (FLOAT, [1, 64])}, w=weights,
    )  # fmt: skip
    scan = node("Scan", "zero x", "h y", body=step, num_scan_inputs=1)
    model = model_of([scan], {"x": [6, 1, 64]}, ["h", "y"], {"zero": np.zeros((1, 64), np.float32)}, opset=17)
    VALUES["x"], before = np.random.default_rng(6).standard_normal((6, 1, 64)).astype(np.float32), VALUES["x"]
    try:
        imported = kept(model, tmp_path)
    finally:
        VALUES["x"] = before
    lowered = lower_by_sequence(Sequence.parse(TVM_DEFAULT), to_relax(imported), imported, "loop", Machine())
    private = repackable_parameters(lowered.program)
    found = {name: schedules(kernel, private[name], Machine()).within(4096) for name, kernel in lowered.kernels.items()}
    assert [len(each.repacks) for each in found.values() if each.repacks] == [1]


def test_the_type_of_a_body_of_bools_is_kept(tmp_path: Path) -> None:
    step = body(
        [node("Less", "xi h", "row"), node("Add", "h xi", "h2")], {"h": (FLOAT, [2, 3]), "xi": (FLOAT, [2, 3])},
        {"h2": (FLOAT, [2, 3]), "row": (TensorProto.BOOL, [2, 3])},
    )  # fmt: skip
    scan = node("Scan", "h0 x", "h y", body=step, num_scan_inputs=1)
    model = model_of([scan], {each: PORTS[each] for each in ("x", "h0")}, ["h"], {}, opset=17)
    model.graph.output.append(helper.make_tensor_value_info("y", TensorProto.BOOL, [5, 2, 3]))
    imported = import_model(save(model, tmp_path))
    assert imported.graph.output[1].type.tensor_type.elem_type == TensorProto.BOOL


@pytest.mark.tvm
def test_a_loop_may_be_as_long_as_the_rows_of_a_kept_one(tmp_path: Path) -> None:
    """Layers of an LSTM that TensorFlow writes as loops, one after the other."""
    first, second = (loop_of(STEP, half=HALF) for _ in range(2))
    second.node[0].input[0] = "rows"
    nodes = [
        node("Loop", "five always h0", "h3 rows", body=first), node("Shape", "rows", "shape"),
        node("Gather", "shape zero", "count", axis=0), node("Loop", "count always h0", "h4 y", body=second),
    ]  # fmt: skip
    constants = {"five": np.asarray(5), "zero": np.asarray(0), "always": np.asarray(True)}
    kept(model_of(nodes, {name: PORTS[name] for name in ("x", "h0")}, ["h4", "y"], constants), tmp_path, scans=2)
