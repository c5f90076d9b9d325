"""Small networks through ONNX Runtime's own quantiser."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

from ...models import NodeBuilder, save

SIGNS = ("s8s8", "u8u8", "u8s8")


def network() -> onnx.ModelProto:
    """Build a small residual network with every form the quantiser knows: convolutions, an addition, pools, products."""
    build = NodeBuilder()
    first = build.node("Relu", build.node("Conv", "x", build.weight(8, 3, 3, 3), build.weight(8), pads=[1, 1, 1, 1]))
    deep = build.node("Conv", first, build.weight(8, 1, 3, 3), build.weight(8), pads=[1, 1, 1, 1], group=8)
    clipped = build.node("Clip", deep, build.constant(np.float32(0)), build.constant(np.float32(6)))
    wide = build.node("Conv", clipped, build.weight(8, 8, 1, 1), build.weight(8))
    total = build.node("Relu", build.node("Add", wide, first))
    pooled = build.node("MaxPool", total, kernel_shape=[2, 2], strides=[2, 2])
    both = build.node("Concat", pooled, build.node("AveragePool", total, kernel_shape=[2, 2], strides=[2, 2]), axis=1)
    mean = build.node("GlobalAveragePool", build.node("Sigmoid", both))
    flat = build.node("Flatten", mean)
    hidden = build.node("Gemm", flat, build.weight(10, 16), build.weight(10), transB=1)
    out = build.node("Softmax", build.node("MatMul", hidden, build.weight(10, 5)), axis=-1)
    return build.model([1, 3, 8, 8], out)


class _Data:
    """Calibration data: four seeded draws."""

    def __init__(self) -> None:
        random = np.random.default_rng(1)
        self.left = [{"x": random.standard_normal((1, 3, 8, 8)).astype(np.float32)} for _ in range(4)]

    def get_next(self) -> dict[str, np.ndarray] | None:
        return self.left.pop() if self.left else None


def quantised(folder: Path, form: str = "QDQ", signs: str = "s8s8", per_channel: bool = True) -> Path:
    """Quantise the network; return its file."""
    from onnxruntime import quantization as q

    kinds = {"s8": q.QuantType.QInt8, "u8": q.QuantType.QUInt8}
    source, target = save(network(), folder), folder / "quantised.onnx"
    q.quantize_static(
        source, target, _Data(), quant_format=q.QuantFormat[form], activation_type=kinds[signs[:2]], weight_type=kinds[signs[2:]],
        per_channel=per_channel,
    )  # fmt: skip
    return target
