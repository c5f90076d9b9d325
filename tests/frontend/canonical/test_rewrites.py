"""Compare every rewrite with its operator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from passfit.errors import ModelError
from passfit.frontend.canonical.rewrites import rewrite
from passfit.frontend.canonicalise import import_model

from ...models import model_of, run, save

node = helper.make_node
RNG = np.random.default_rng(0)
NO_SCALES = {"none": np.zeros(0, np.float32), "sizes": np.asarray([1, 2, 6, 8])}


def _expanded(op: str, axis: int) -> list[onnx.NodeProto]:
    """Return nodes that compute indices `n` of shape `s` from `x`: equal along an axis."""
    return [node(op, ["x"], ["i"], axis=axis, keepdims=1), node("Expand", ["i", "s"], ["n"])]


CASES = {
    "Sum": ([node("Sum", ["x", "x", "x"], ["y"])], {}, [1, 2, 3, 4], 13),
    "Det of matrices that need other pivots": (
        [node("Mul", ["x", "c"], ["m"]), node("Det", ["m"], ["y"])], {"c": np.float32(1 - np.eye(5))}, [2, 3, 5, 5], 22,
    ),
    "Det of a singular matrix": (
        [node("Mul", ["x", "c"], ["m"]), node("Det", ["m"], ["y"])], {"c": np.float32([[1, 1, 0]])}, [2, 3, 3], 22,
    ),
    "Col2Im that leaves a rest": (
        [node("Col2Im", ["x", "c", "k"], ["y"], strides=[2, 2])], {"c": np.asarray([6, 7]), "k": np.asarray([3, 2])}, [2, 12, 6], 18,
    ),
    "Sum of one": ([node("Sum", ["x"], ["t"]), node("Neg", ["t"], ["y"])], {}, [1, 2, 3, 4], 13),
    "Mean": ([node("Mean", ["x", "c"], ["y"])], {"c": np.float32(3)}, [1, 2, 3, 4], 13),
    "Resize": ([node("Resize", ["x", "none", "none", "sizes"], ["y"], mode="linear")], NO_SCALES, [1, 2, 3, 4], 11),
    "Resize to fewer, by a scale that gives no whole size": (
        [node("Resize", ["x", "", "c"], ["y"], mode="nearest", nearest_mode="ceil")], {"c": np.float32([1, 1, 0.6, 0.7])}, [1, 2, 9, 11], 13,
    ),
    "Resize to more, by a scale that gives no whole size": (
        [node("Resize", ["x", "", "c"], ["y"], mode="cubic", exclude_outside=1)], {"c": np.float32([1, 1, 1.5, 2.3])}, [1, 2, 9, 7], 13,
    ),
    "Resize that smooths": (
        [node("Resize", ["x", "", "", "c"], ["y"], mode="linear", antialias=1)], {"c": np.asarray([2, 2, 4, 12])}, [2, 2, 9, 6], 18,
    ),
    "Resize within sizes": (
        [node("Resize", ["x", "", "", "c"], ["y"], mode="linear", axes=[3, 2], keep_aspect_ratio_policy="not_larger")],
        {"c": np.asarray([10, 10])}, [1, 2, 5, 8], 18,
    ),
    "Resize to one element": (
        [node("Resize", ["x", "", "", "c"], ["y"], mode="linear", coordinate_transformation_mode="pytorch_half_pixel")], {"c": np.asarray([1, 2, 1, 3])}, [1, 2, 6, 7], 18,
    ),
    "Resize between corners, to fewer": (
        [node("Resize", ["x", "", "c"], ["y"], mode="linear", coordinate_transformation_mode="align_corners")], {"c": np.float32([1, 1, 0.6, 0.15])}, [1, 2, 9, 7], 13,
    ),
    "Resize of the nearest between corners": (
        [node("Resize", ["x", "", "c"], ["y"], coordinate_transformation_mode="align_corners", nearest_mode="floor")], {"c": np.float32([1, 1, 1.3, 1.9])}, [1, 2, 9, 7], 13,
    ),
    "Resize of three dimensions": ([node("Resize", ["x", "", "c"], ["y"], mode="linear")], {"c": np.float32([2, 1.5, 0.5])}, [2, 3, 4], 18),
    "MaxPool padded at the lower end": ([node("MaxPool", ["x"], ["y"], kernel_shape=[2, 3], strides=[2, 3], auto_pad="SAME_LOWER")], {}, [1, 2, 7, 8], 13),
    "MaxPool padded and dilated": ([node("MaxPool", ["x"], ["y"], kernel_shape=[3, 2], dilations=[2, 3], auto_pad="SAME_UPPER")], {}, [1, 2, 7, 8], 13),
    "IsInf without signs": (
        [node("Div", ["x", "c"], ["d"]), node("IsInf", ["d"], ["i"], detect_negative=0, detect_positive=0), node("Cast", ["i"], ["y"], to=1)], {"c": np.float32(0)}, [4], 13,
    ),
    "Resize of channels": ([node("Resize", ["x", "", "c"], ["y"], mode="linear")], {"c": np.float32([1, 2, 1, 1])}, [1, 3, 2, 2], 13),
    "Softplus": ([node("Softplus", ["x"], ["y"])], {}, [64], 13),
    "Pow 2": ([node("Pow", ["x", "c"], ["y"])], {"c": np.float32(2)}, [9], 13),
    "Pow 3": ([node("Pow", ["x", "c"], ["y"])], {"c": np.float32(3)}, [9], 13),
    "Pow of two dtypes": ([node("Pow", ["x", "c"], ["y"])], {"c": np.asarray([4, 5, 0])}, [3], 13),
    "LpNormalization": ([node("LpNormalization", ["x"], ["y"], axis=1, p=1)], {}, [3, 4], 13),
    "ReverseSequence": ([node("ReverseSequence", ["x", "c"], ["y"])], {"c": np.asarray([1, 4, 0, 2, 3])}, [4, 5, 2, 3], 13),
    "ReverseSequence along the second axis": (
        [node("ReverseSequence", ["x", "c"], ["y"], time_axis=1, batch_axis=0)], {"c": np.asarray([5, 1, 3])}, [3, 5], 13,
    ),
    "ReverseSequence of computed lengths": (
        [node("ArgMax", ["x"], ["n"], axis=0, keepdims=0), node("ReverseSequence", ["x", "n"], ["y"])], {}, [4, 5], 13,
    ),
    "ScatterElements by expanded indices": (
        [*_expanded("ArgMax", axis=1), node("ScatterElements", ["x", "n", "u"], ["y"], reduction="add")],
        {"s": np.asarray([6, 4]), "u": np.ones((6, 4), np.float32)}, [6, 4], 16,
    ),
    "ScatterElements of part of a line": (
        [*_expanded("ArgMax", axis=1), node("ScatterElements", ["x", "n", "u"], ["y"], reduction="add")],
        {"s": np.asarray([6, 3]), "u": np.ones((6, 3), np.float32)}, [6, 4], 16,
    ),
    "GatherElements by expanded indices": (
        [*_expanded("ArgMin", axis=2), node("GatherElements", ["x", "n"], ["y"], axis=-2)], {"s": np.asarray([1, 6, 5])}, [1, 6, 5], 13,
    ),
    "SplitToSequence in an operator set whose Split has no number of parts": (
        [node("SplitToSequence", ["x", "c"], ["s"], axis=1), node("ConcatFromSequence", ["s"], ["y"], axis=0)], {"c": np.asarray(2)}, [3, 6], 13,
    ),
    "SplitToSequence with a smaller last part": (
        [node("SplitToSequence", ["x", "c"], ["s"], axis=1), node("SequenceAt", ["s", "i"], ["y"])], {"c": np.asarray(4), "i": np.asarray(1)}, [3, 6], 13,
    ),
    "ConvTranspose": (
        [node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2], output_shape=[7, 8])],
        {"w": RNG.standard_normal((2, 3, 3, 3)).astype(np.float32)}, [1, 2, 3, 4], 13,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_rewrite_changes_no_result(tmp_path: Path, name: str) -> None:
    nodes, constants, shape, opset = CASES[name]
    model = model_of(nodes, {"x": shape}, ["y"], constants, opset=opset)
    imported = import_model(save(model, tmp_path))
    x = (8 * RNG.standard_normal(shape)).astype(np.float32)
    if name.startswith("Pow of"):
        x = abs(x)
    np.testing.assert_allclose(run(imported, {"x": x})[0], run(model, {"x": x})[0], rtol=1e-4, atol=1e-5)
    assert "Sum" not in {each.op_type for each in imported.graph.node}


@pytest.mark.parametrize(
    "made", [node("ReduceL2", ["x"], ["y"], axes=[1]), node("ReduceSumSquare", ["x"], ["y"], axes=[1]), node("Einsum", ["x", "x"], ["y"], equation="ij,kj->ik")],
    ids=lambda made: made.op_type,
)  # fmt: skip
def test_products_of_float16_are_summed_in_float32(tmp_path: Path, made: onnx.NodeProto) -> None:
    model = model_of([made], {"x": [3, 5]}, ["y"], opset=13, dtype=TensorProto.FLOAT16)
    imported = import_model(save(model, tmp_path))
    assert [each.op_type for each in imported.graph.node] == ["Cast"] * (1 + (made.op_type == "Einsum")) + [
        made.op_type,
        "Cast",
    ]
    x = np.full((3, 5), 100, np.float16)
    np.testing.assert_array_equal(run(imported, {"x": x})[0], run(model, {"x": x})[0])


def test_bodies_inside_bodies_are_simpler_operators(tmp_path: Path) -> None:
    """Freeze nothing: ONNX Runtime would compute the loss of constants."""
    loss = node("SoftmaxCrossEntropyLoss", ["x", "t"], ["y"])
    model = model_of([loss], {"x": [3, 5], "t": [3]}, ["y"], dtypes={"t": TensorProto.INT64}, opset=13)
    x, t = RNG.standard_normal((3, 5)).astype(np.float32), np.array([1, 0, 4])
    (found,) = run(import_model(save(model, tmp_path)), {"x": x, "t": t})
    chosen = np.exp(x)[range(3), t] / np.exp(x).sum(1)
    np.testing.assert_allclose(found, -np.log(chosen).mean(), rtol=1e-5)


def test_softplus_keeps_its_digits_far_below_zero(tmp_path: Path) -> None:
    model = import_model(save(model_of([node("Softplus", ["x"], ["y"])], {"x": [50]}, ["y"]), tmp_path))
    x = np.linspace(-40, 10, 50, dtype=np.float32)
    exact = np.log1p(np.exp(x.astype(np.float64)))
    np.testing.assert_allclose(run(model, {"x": x})[0], exact, rtol=5e-5)


@pytest.mark.parametrize(
    ("case", "kept"),
    [
        ("ScatterElements by expanded indices", False),
        ("GatherElements by expanded indices", False),
        ("ScatterElements of part of a line", True),
    ],
)
def test_lines_are_read_and_written_by_one_index_each(tmp_path: Path, case: str, kept: bool) -> None:
    nodes, constants, shape, opset = CASES[case]
    imported = import_model(save(model_of(nodes, {"x": shape}, ["y"], constants, opset=opset), tmp_path))
    assert ("Expand" in {each.op_type for each in imported.graph.node}) == kept


@pytest.mark.parametrize(
    ("nodes", "constants", "said"),
    [
        (
            [
                node(
                    "Resize", ["x", "r", "s"], ["y"], mode="linear", coordinate_transformation_mode="tf_crop_and_resize"
                )
            ],
            {"r": np.float32([0, 0, 0, 0, 1, 1, 0.7, 1]), "s": np.float32([1, 1, 1.3, 1])},
            "whole",
        ),
        (
            [node("Resize", ["x", "r", "", "s"], ["y"], coordinate_transformation_mode="tf_crop_and_resize")],
            {"r": np.float32([0, 0, 0, 0, 1, 1, 0.7, 1]), "s": np.asarray([1, 2, 1, 4])},
            "a single element",
        ),
        ([node("Dropout", ["x", "r", "t"], ["y"])], {"r": np.float32(0.5), "t": np.asarray(True)}, "training"),
    ],
)
def test_forms_that_would_be_computed_wrongly_are_refused(
    tmp_path: Path, nodes: list, constants: dict[str, np.ndarray], said: str
) -> None:
    with pytest.raises(ModelError, match=said):
        import_model(save(model_of(nodes, {"x": [1, 2, 3, 4]}, ["y"], constants), tmp_path))


def test_an_operator_that_its_operator_set_lacks_is_refused(tmp_path: Path) -> None:
    model = model_of([node("Swish", ["x"], ["y"])], {"x": [4]}, ["y"], {}, opset=23)
    with pytest.raises(ModelError, match="Swish of the node .* is not in ONNX's operator set 23"):
        import_model(save(model, tmp_path))


def test_attention_of_shared_heads_and_rotary_embeddings_are_simpler_operators(tmp_path: Path) -> None:
    nodes = [node("Attention", ["x", "k", "k"], ["a"], is_causal=1), node("RotaryEmbedding", ["a", "c", "c"], ["y"])]
    arrays = {
        "k": RNG.standard_normal((1, 2, 5, 8)).astype(np.float32),
        "c": RNG.standard_normal((1, 3, 4)).astype(np.float32),
    }
    model = model_of(nodes, {"x": [1, 4, 3, 8]}, ["y"], arrays, opset=23)
    imported = import_model(save(model, tmp_path))
    x = RNG.standard_normal((1, 4, 3, 8)).astype(np.float32)
    np.testing.assert_allclose(run(imported, {"x": x})[0], run(model, {"x": x})[0], rtol=1e-4, atol=1e-6)
    assert not {"Attention", "RotaryEmbedding"} & {each.op_type for each in imported.graph.node}


@pytest.mark.parametrize("shape", [(2, 4, 4, 4), (2, 3, 4, 5), (2, 3, 3)])
def test_a_line_of_slopes_is_of_channels_before_set_7(shape: tuple[int, ...], tmp_path: Path) -> None:
    slopes = np.arange(1, shape[1] + 1, dtype=np.float32)
    model = model_of([node("PRelu", ["x", "s"], ["y"])], {"x": shape, "s": slopes.shape}, ["y"], opset=6)
    x = RNG.standard_normal(shape).astype(np.float32)
    (result,) = run(import_model(save(model, tmp_path)), {"x": x, "s": slopes})
    np.testing.assert_allclose(result, np.where(x < 0, x * slopes.reshape(-1, *[1] * (len(shape) - 2)), x))


@pytest.mark.parametrize("axis", [1, -2, 3])
def test_a_softmax_along_no_axis_of_its_operand_stays(axis: int) -> None:
    model = model_of([node("Softmax", ["x"], ["y"], axis=axis)], {"x": [1]}, {"y": [1]})
    assert [each.op_type for each in rewrite(model).graph.node] == ["Softmax"]
