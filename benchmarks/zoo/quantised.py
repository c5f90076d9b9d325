"""Models with quantised weights, made by ONNX Runtime's own quantiser from the float ones of the zoo."""

from __future__ import annotations

import logging
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx

from .transformer import encoder


def dynamically_quantised(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return `model` with products of int8 weights, whose other operands are quantised while the model runs."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with TemporaryDirectory() as folder:
        source, target = Path(folder) / "float.onnx", Path(folder) / "quantised.onnx"
        onnx.save(model, source)
        logger = logging.getLogger()
        level = logger.level
        logger.setLevel(logging.ERROR)  # it recommends a preparation, by which nothing changes here
        try:
            quantize_dynamic(source, target, weight_type=QuantType.QInt8)
        finally:
            logger.setLevel(level)
        return onnx.load(target)


def minilm_int8() -> onnx.ModelProto:
    """Encoder of the size of MiniLM-L6 (Wang et al., 2020), 64 tokens of 2000 words, dynamically quantised."""
    return dynamically_quantised(encoder(layers=6, width=384, tokens=64, heads=12, words=2000))
