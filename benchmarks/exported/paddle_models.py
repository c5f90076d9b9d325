"""Build small networks of PaddlePaddle, and write them by paddle2onnx."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import paddle
import paddle2onnx
from paddle import nn

#: operator set of paddle2onnx
_SET = 18


def block(inside: int, outside: int, stride: int = 1, groups: int = 1) -> nn.Layer:
    return nn.Sequential(
        nn.Conv2D(inside, outside, 3, stride=stride, padding=1, groups=groups, bias_attr=False), nn.BatchNorm2D(outside), nn.Hardswish()
    )  # fmt: skip


class TextRecogniser(nn.Layer):
    """PP-OCR's recogniser: MobileNetV3's blocks, an LSTM both ways, softmax for CTC."""

    def __init__(self, width: int = 16, classes: int = 40):
        super().__init__()
        self.body = nn.Sequential(
            block(3, width, 2), block(width, width, groups=width), block(width, 2 * width, 2), nn.MaxPool2D((8, 1))
        )
        self.recurrent, self.head = nn.LSTM(2 * width, 24, direction="bidirect"), nn.Linear(48, classes)

    def forward(self, image):
        x = self.body(image).squeeze(2).transpose([0, 2, 1])
        return nn.functional.softmax(self.head(self.recurrent(x)[0]), axis=2)


class TextDetector(nn.Layer):
    """PP-OCR's detector: a pyramid summed by nearest resizing, transposed windows, a differentiable threshold."""

    def __init__(self, width: int = 16):
        super().__init__()
        self.fine, self.coarse = block(3, width, 4), block(width, width, 2)
        self.squeeze = nn.Sequential(
            nn.AdaptiveAvgPool2D(1), nn.Conv2D(width, 4, 1), nn.ReLU(), nn.Conv2D(4, width, 1), nn.Hardsigmoid()
        )
        self.up = nn.Sequential(
            nn.Conv2DTranspose(width, 8, 2, 2), nn.BatchNorm2D(8), nn.ReLU(), nn.Conv2DTranspose(8, 1, 2, 2)
        )

    def forward(self, image):
        fine = self.fine(image)
        coarse = self.coarse(fine)
        coarse = coarse * self.squeeze(coarse)
        x = fine + nn.functional.interpolate(coarse, scale_factor=2.0, mode="nearest")
        return nn.functional.sigmoid(self.up(x))


class Vision(nn.Layer):
    """SVTR's mixing: attention over columns, LayerNorm, swish."""

    def __init__(self, width: int = 32):
        super().__init__()
        self.patches, self.norm = nn.Conv2D(3, width, 4, 4), nn.LayerNorm(width)
        self.mix, self.head = (
            nn.TransformerEncoderLayer(width, 4, 64, activation="gelu", normalize_before=True),
            nn.Linear(width, 10),
        )

    def forward(self, image):
        x = self.patches(image).flatten(2).transpose([0, 2, 1])
        return self.head(self.norm(self.mix(x)).mean(1))


def write(build: Callable[[], nn.Layer], shape: tuple[int, ...], path: Path) -> None:
    paddle.seed(0)
    model = build()
    model.eval()
    with tempfile.TemporaryDirectory() as folder:
        prefix = str(Path(folder) / "model")
        paddle.jit.save(model, prefix, input_spec=[paddle.static.InputSpec(list(shape), "float32", "image")])
        paddle2onnx.export(
            f"{prefix}.json", f"{prefix}.pdiparams", str(path), opset_version=_SET, optimize_tool="onnxoptimizer"
        )
    if not path.exists():
        raise RuntimeError("paddle2onnx wrote no file")


WRITERS: dict[str, Callable[[Path], None]] = {
    "pp-ocr-recogniser.paddle2onnx": partial(write, TextRecogniser, (1, 3, 32, 96)),
    "pp-ocr-detector.paddle2onnx": partial(write, TextDetector, (1, 3, 64, 64)),
    "svtr.paddle2onnx": partial(write, Vision, (1, 3, 16, 48)),
}
