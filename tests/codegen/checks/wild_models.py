"""Models with an input that addresses or divides, and values for it: allowed ones and wild ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper

from ...models import model_of

node = helper.make_node
_DTYPES = {
    "float32": TensorProto.FLOAT,
    "int64": TensorProto.INT64,
    "int32": TensorProto.INT32,
    "int8": TensorProto.INT8,
}
#: also multiples of 2^32 and fractions of 2^64 that wrap around to small numbers
INTEGERS = (
    *(0, 1, -1, 2, 3, 4, 5, -5, 6, -6, 7, 8, -8, 16, 35, 100, -100, 2**15, 2**29 + 1, 2**31 - 1, -(2**31)),
    *(2**32, 2**32 + 1, 2**61 + 1, 2**62 + 1, 2**63 - 1, -(2**63), -(2**32) + 1),
)
FLOATS = (0.0, -0.0, 1.0, 1.9, -1.0, 4.0, 5.0, 1e30, -1e30, 2.0**32 + 512, float(2**31), np.nan, np.inf, -np.inf, 1e-40)


@dataclass(frozen=True)
class WildModel:
    """Model with good `inputs`, of which `wild` takes other values. `exact`: ONNX Runtime refuses what passfit refuses."""

    model: onnx.ModelProto
    inputs: dict[str, np.ndarray]
    wild: str
    exact: bool = True

    def cases(self) -> Iterator[dict[str, np.ndarray]]:
        """Yield the inputs with each value of its dtype at the first and at the last place."""
        yield self.inputs
        good = self.inputs[self.wild]
        floats = good.dtype.kind == "f"
        limits = None if floats else np.iinfo(good.dtype)
        for value in FLOATS if floats else INTEGERS:
            if limits is None or limits.min <= value <= limits.max:
                for place in {0, good.size - 1}:
                    changed = good.copy()
                    changed.reshape(-1)[place] = value
                    yield {**self.inputs, self.wild: changed}


def _wild(
    nodes: list, inputs: dict, outputs: dict, wild: str, constants: dict | None = None, exact: bool = True, **options
) -> WildModel:
    dtypes = {name: _DTYPES[str(each.dtype)] for name, each in inputs.items()} | options.pop("results", {})
    shapes = {name: each.shape for name, each in inputs.items()}
    return WildModel(model_of(nodes, shapes, outputs, constants or {}, dtypes=dtypes, **options), inputs, wild, exact)


def wild_models() -> dict[str, WildModel]:
    """Return a model of each kernel that computes addresses from data, or divides by it."""
    random = np.random.default_rng(5)

    def floats(*shape: int) -> np.ndarray:
        return random.standard_normal(shape).astype(np.float32)

    x, i = floats(5, 7), np.array([0, -1, 4])
    lengths = np.array([4, 2], np.int32)
    steps = {"x": floats(4, 2, 3), "n": lengths}
    weights = {"w": floats(2, 16, 3), "r": floats(2, 16, 4)}
    recurrent = {"hidden_size": 4, "direction": "bidirectional"}
    image, grid = floats(2, 2, 4, 4), 0.5 * floats(2, 3, 3, 2)
    boxes = np.array([[0, 0, 0, 3, 3], [1, 1, 1, 3, 3]], np.float32)
    words = {"w": floats(5, 4), "p": floats(3, 4), "k": floats(2, 4), "g": floats(4), "b": floats(4)}
    ids = {name: random.integers(0, most, (1, 3)).astype(np.int32) for name, most in (("i", 5), ("s", 2), ("o", 3))}
    embed = node("EmbedLayerNormalization", [*"iswpkgb", "", "o"], ["y", "m"], domain="com.microsoft")
    table = {"t": random.integers(-128, 128, (5, 16)).astype(np.int8), "s": np.float32(0.1), "z": np.int8(3)}
    return {
        "gather": _wild([node("Gather", ["x", "i"], ["y"])], {"x": x, "i": i}, {"y": (3, 7)}, "i"),
        "columns": _wild([node("Gather", ["x", "i"], ["y"], axis=1)], {"x": x, "i": i.astype(np.int32)}, {"y": (5, 3)}, "i"),
        "elements": _wild([node("GatherElements", ["x", "i"], ["y"], axis=1)], {"x": x, "i": random.integers(-7, 7, (5, 3))}, {"y": (5, 3)}, "i"),
        "gather_nd": _wild([node("GatherND", ["x", "i"], ["y"])], {"x": x, "i": np.array([[0, -1], [4, 2]])}, {"y": (2,)}, "i"),
        "batches": _wild([node("GatherND", ["x", "i"], ["y"], batch_dims=1)], {"x": x, "i": np.array([[0], [1], [2], [3], [-1]])}, {"y": (5,)}, "i"),
        **{f"embed {name}": _wild([embed], ids, {"y": (1, 3, 4)}, name, words) for name in ids},
        "rotary": _wild([node("RotaryEmbedding", ["x", "c", "s", "i"], ["y"])], {"x": floats(1, 2, 3, 4), "i": np.array([[0, 5, 1]])}, {"y": (1, 2, 3, 4)}, "i", {"c": floats(6, 2), "s": floats(6, 2)}, opset=23),
        "unpool": _wild([node("MaxUnpool", ["x", "i"], ["y"], kernel_shape=[2, 2], strides=[2, 2])], {"x": floats(1, 1, 2, 2), "i": np.array([[[[0, 3], [9, 15]]]])}, {"y": (1, 1, 4, 4)}, "i"),
        "rows": _wild([node("ScatterND", ["x", "i", "u"], ["y"])], {"x": x, "i": np.array([[0], [4]]), "u": floats(2, 7)}, {"y": (5, 7)}, "i"),
        "points": _wild([node("ScatterND", ["x", "i", "u"], ["y"], reduction="add")], {"x": x, "i": np.array([[0, 1], [4, -1]]), "u": floats(2)}, {"y": (5, 7)}, "i", opset=18),
        "scatter": _wild([node("ScatterElements", ["x", "i", "u"], ["y"], axis=0)], {"x": x, "i": random.permutation(5)[:2, None] + np.zeros((2, 7), int), "u": floats(2, 7)}, {"y": (5, 7)}, "i", exact=False),
        "mirror": _wild([node("ReverseSequence", ["x", "n"], ["y"], time_axis=1, batch_axis=0)], {"x": x, "n": np.array([1, 7, 3, 2, 0])}, {"y": (5, 7)}, "n"),
        "lstm": _wild([node("LSTM", ["x", "w", "r", "", "n"], ["y"], **recurrent)], steps, {"y": (4, 2, 2, 4)}, "n", weights),
        "gru": _wild([node("GRU", ["x", "w", "r", "", "n"], ["y"], hidden_size=4)], steps, {"y": (4, 1, 2, 4)}, "n", {"w": floats(1, 12, 3), "r": floats(1, 12, 4)}),
        "align": _wild([node("RoiAlign", ["x", "b", "i"], ["y"], output_height=2, output_width=2, sampling_ratio=2)], {"x": image, "b": boxes[:, 1:], "i": np.array([0, 1])}, {"y": (2, 2, 2, 2)}, "i"),
        "pool": _wild([node("MaxRoiPool", ["x", "b"], ["y"], pooled_shape=[2, 2])], {"x": image, "b": boxes}, {"y": (2, 2, 2, 2)}, "b", exact=False),
        "sample": _wild([node("GridSample", ["x", "g"], ["y"])], {"x": image, "g": grid}, {"y": (2, 2, 3, 3)}, "g", exact=False, opset=16),
        "reflect": _wild([node("GridSample", ["x", "g"], ["y"], padding_mode="reflection")], {"x": image, "g": grid}, {"y": (2, 2, 3, 3)}, "g", exact=False, opset=16),
        "cast": _wild([node("Cast", ["f"], ["i"], to=TensorProto.INT64), node("Gather", ["x", "i"], ["y"])], {"x": x, "f": np.array([0, 1, 4], np.float32)}, {"y": (3, 7)}, "f", exact=False),
        "bytes": _wild([node("DequantizeLinear", ["t", "s", "z"], ["d"]), node("Gather", ["d", "i"], ["y"])], {"i": i}, {"y": (3, 16)}, "i", table),
        "divide": _wild([node("Div", ["a", "b"], ["y"])], {"a": np.array([7, -7, -(2**31)], np.int32), "b": np.array([2, 2, 2], np.int32)}, {"y": (3,)}, "b", results={"y": TensorProto.INT32}),
        "divide8": _wild([node("Div", ["a", "b"], ["y"])], {"a": np.array([7, -7, -128], np.int8), "b": np.array([2, 2, 2], np.int8)}, {"y": (3,)}, "b", results={"y": TensorProto.INT8}),
        "modulo": _wild([node("Mod", ["a", "b"], ["y"])], {"a": np.array([7, -7, -(2**63)]), "b": np.array([2, 2, 2])}, {"y": (3,)}, "b", results={"y": TensorProto.INT64}),
    }  # fmt: skip
