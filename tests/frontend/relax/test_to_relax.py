"""Check that the graph keeps the model's ports in order, and each fused kernel its ONNX nodes."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from passfit.errors import ModelError
from passfit.frontend.canonical.recurrent_step import RECURRENT
from passfit.frontend.canonicalise import import_model
from passfit.frontend.refuse.operators import OPERATORS
from passfit.frontend.relax.provenance import provenance
from passfit.frontend.relax.to_relax import to_relax
from passfit.passes.sequence.replay import lower_by_sequence
from passfit.passes.sequence.sequence import TVM_DEFAULT, Sequence

from ...models import model_of, save

pytestmark = pytest.mark.tvm
node = helper.make_node
RNG = np.random.default_rng(0)


def convolutions(tmp_path: Path):
    """Build two equal conv + batch norm + relu groups, which fusion makes one function of, and their sum."""
    constants = {"w": RNG.standard_normal((4, 4, 3, 3)).astype(np.float32)}
    constants |= {name: np.abs(RNG.standard_normal(4)).astype(np.float32) for name in ("g", "b", "m", "v")}
    nodes = []
    for index, source in ((1, "x"), (2, "r1")):
        nodes += [
            node("Conv", [source, "w"], [f"c{index}"], name=f"conv{index}", pads=[1, 1, 1, 1]),
            node("BatchNormalization", [f"c{index}", "g", "b", "m", "v"], [f"n{index}"], name=f"norm{index}"),
            node("Relu", [f"n{index}"], [f"r{index}"], name=f"relu{index}"),
        ]
    nodes.append(node("GlobalAveragePool", ["r2"], ["y"], name="pool"))
    model = model_of(nodes, {"x": [1, 4, 8, 8]}, ["y"], constants)
    return import_model(save(model, tmp_path))


def test_every_kernel_names_its_nodes_though_functions_are_shared(tmp_path: Path) -> None:
    model = convolutions(tmp_path)
    assert list(nodes_of_kernels(model)) == [("conv1", "norm1", "relu1"), ("conv2", "norm2", "relu2"), ("pool",)]


def test_kernels_name_their_nodes_though_shared_functions_hold_constants_of_the_first(tmp_path: Path) -> None:
    nodes, source = [], "x"
    for number in (1, 2):
        names = [f"{name}{number}" for name in ("q", "scale", "zero")]
        nodes += [
            node("DynamicQuantizeLinear", [source], names, name=f"quantise{number}"),
            node("DequantizeLinear", names, [f"d{number}"], name=f"dequantise{number}"),
            node("Relu", [f"d{number}"], [source := f"r{number}"], name=f"relu{number}"),
        ]
    model = import_model(save(model_of(nodes, {"x": [1, 4, 8, 8]}, [source]), tmp_path))
    lowered = lower_by_sequence(Sequence.parse(TVM_DEFAULT), to_relax(model), model, "m")
    found = [step.nodes for step in lowered.program.steps]
    assert all(found) and {"quantise1", "quantise2", "relu2"} <= {name for each in found for name in each}


def nodes_of_kernels(model):
    """Return the nodes of each kernel after TVM's fusion."""
    from tvm.relax import transform as T

    before = to_relax(model)
    for each in (
        T.DecomposeOpsForInference(), T.CanonicalizeBindings(), T.FoldConstant(), T.LegalizeOps(),
        T.AnnotateTIROpPattern(), T.FoldConstant(), T.DeadCodeElimination(),
    ):  # fmt: skip
        before = each(before)
    return list(provenance(model, before, T.FuseOps()(before)).values())


def test_ports_keep_their_order(tmp_path: Path) -> None:
    nodes = [node("Relu", ["b"], ["z"]), node("Neg", ["a"], ["y"])]
    model = import_model(save(model_of(nodes, {"b": [1, 2], "a": [3]}, ["y", "z"]), tmp_path))
    main = to_relax(model)["main"]
    assert [tuple(int(size) for size in each.ty.shape) for each in main.params] == [(1, 2), (3,)]
    assert [tuple(int(size) for size in each.shape) for each in main.ret_ty.fields] == [(3,), (1, 2)]


def test_wide_maxima_need_no_stack(tmp_path: Path) -> None:
    model = import_model(save(model_of([node("Max", ["x", "z"], ["y"])], {"x": [4], "z": [4]}, ["y"]), tmp_path))
    values = [binding.value for block in to_relax(model)["main"].body.blocks for binding in block.bindings]
    chosen = ["relax.greater", "relax.isnan", "relax.logical_or", "relax.where"]
    assert [value.op.name for value in values if hasattr(value, "op")] == chosen


def test_what_the_importer_does_not_take_is_named(tmp_path: Path) -> None:
    """Say so by the form of the node: TVM's own words are assertions and dumps."""
    total = node("CumSum", ["x", "a"], ["y"], name="total", reverse=1)
    model = model_of([total], {"x": [4, 5], "a": []}, ["y"], dtypes={"a": TensorProto.INT32})
    said = r"CumSum node 'total' cannot be compiled: its form is not supported \(float32 4x5 and int32 scalar, with reverse=1\)\."
    with pytest.raises(ModelError, match=said):
        to_relax(import_model(save(model, tmp_path)))


def test_a_converter_that_fails_by_its_own_fault_is_a_bug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from passfit.frontend.relax import importer

    def fail(*_: object) -> None:
        raise IndexError("of ours")

    model = import_model(save(model_of([node("Max", ["x", "z"], ["y"])], {"x": [4], "z": [4]}, ["y"]), tmp_path))
    monkeypatch.setattr(importer, "convert_extreme", fail)
    with pytest.raises(IndexError, match="of ours"):
        to_relax(model)


def test_the_operators_taken_are_known_to_tvm_or_converted_here() -> None:
    from tvm.relax.frontend.onnx.onnx_frontend import _get_convert_map

    from passfit.frontend.relax.importer import CONVERTED

    assert set(_get_convert_map()) | RECURRENT | CONVERTED >= OPERATORS


def test_a_refused_node_leaves_nothing_on_stderr(tmp_path, capfd):
    model = import_model(save(model_of([node("Relu", ["x"], ["y"])], {"x": [1, 2, 4, 4]}, ["y"]), tmp_path))
    conv = node("Conv", ["x", "w"], ["y"], name="wrong", group=3)
    weights = helper.make_tensor("w", 1, (2, 2, 1, 1), [0.0] * 4)
    del model.graph.node[:]
    model.graph.node.append(conv)
    model.graph.initializer.append(weights)
    with pytest.raises(ModelError, match="'wrong'"):
        to_relax(model)
    gc.collect()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("bounds", [(0, 6), (0, None), (None, 6), (np.nan, 6)], ids=str)
def test_a_clip_is_made_of_operators_that_passes_know(
    tmp_path: Path, bounds: tuple[float | None, float | None]
) -> None:
    constants = {name: np.float32(each) for name, each in zip("ab", bounds) if each is not None}
    inputs = ["x", *(name if name in constants else "" for name in "ab")]
    script = to_relax(
        import_model(save(model_of([node("Clip", inputs, ["y"])], {"x": [2]}, ["y"], constants), tmp_path))
    )
    assert "call_tir" not in script.script()


@pytest.mark.parametrize(
    ("widths", "dtype", "known"),
    [((1, 0, 2, 1), "float32", True), ((1, -1, 0, 0), "float32", False), ((1, 0, 0, 0), "int64", False)],
)
def test_padding_is_the_operator_that_passes_know(
    tmp_path: Path, widths: tuple[int, ...], dtype: str, known: bool
) -> None:
    constants = {"w": np.array(widths, "int64"), "v": np.asarray(3, dtype)}
    model = model_of(
        [node("Pad", ["x", "w", "v"], ["y"])],
        {"x": [2, 3]},
        ["y"],
        constants,
        dtype=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)),
    )
    script = to_relax(import_model(save(model, tmp_path))).script()
    # whole numbers have values that TVM's operator cannot name, and it does not crop
    assert ("R.nn.pad" in script) == known


def test_padding_to_the_same_size_is_that_operator_too(tmp_path: Path) -> None:
    same = node("Conv", ["x", "w"], ["y"], auto_pad="SAME_UPPER", kernel_shape=[3])
    model = model_of([same], {"x": [1, 1, 5]}, ["y"], {"w": np.ones((1, 1, 3), "float32")})
    script = to_relax(import_model(save(model, tmp_path))).script()
    assert "R.nn.pad" in script and "call_tir" not in script


def test_scales_beyond_float32_are_refused():
    """Refuse an infinite multiplier: infinity times a sum of 0 has no value that all targets agree on."""
    names = ["x", "s", "z", "w", "s", "z", "s", "z"]
    constants = {"s": np.float32(1e38), "z": np.int8(0), "w": np.ones((4, 3, 1, 1), np.int8)}
    kinds = {"x": onnx.TensorProto.INT8, "y": onnx.TensorProto.INT8}
    model = model_of(
        [onnx.helper.make_node("QLinearConv", names, ["y"], name="layer")],
        {"x": [1, 3, 2, 2]},
        ["y"],
        constants,
        dtypes=kinds,
    )
    with pytest.raises(ModelError, match="'layer' cannot be compiled: .* exceeds float32"):
        to_relax(model)
