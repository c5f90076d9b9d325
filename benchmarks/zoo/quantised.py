"""Models with quantised weights, made by ONNX Runtime's own quantiser from the float ones of the zoo."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
from onnx import TensorProto, helper

from .mcunet import mcunet_vww
from .mobilenet import mobilenet_v2
from .transformer import encoder

#: pictures that calibrate static quantisation
_PICTURES = 8


def dynamically_quantised(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return `model` with products of int8 weights, whose other operands are quantised while the model runs."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with TemporaryDirectory() as folder:
        source, target = Path(folder) / "float.onnx", Path(folder) / "quantised.onnx"
        onnx.save(model, source)
        with _quiet():
            quantize_dynamic(source, target, weight_type=QuantType.QInt8)
        return onnx.load(target)


def statically_quantised(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a network of pictures in int8, with QDQ nodes: weights by channel, inputs and outputs int8, channels last.

    Ranges are those of pictures of random numbers.
    """
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    shape = tuple(each.dim_value for each in model.graph.input[0].type.tensor_type.shape.dim)

    class Pictures(CalibrationDataReader):
        def __init__(self) -> None:
            random = np.random.default_rng(0)
            self._left = iter([{"input": random.standard_normal(shape, dtype=np.float32)} for _ in range(_PICTURES)])

        def get_next(self) -> dict[str, np.ndarray] | None:
            return next(self._left, None)

    with TemporaryDirectory() as folder:
        source, folded, target = (Path(folder) / f"{name}.onnx" for name in ("float", "folded", "quantised"))
        onnx.save(model, source)
        with _quiet():
            quant_pre_process(
                source, folded, skip_symbolic_shape=True
            )  # batch normalisation becomes part of convolutions
            quantize_static(
                folded, target, Pictures(), quant_format=QuantFormat.QDQ, per_channel=True,
                activation_type=QuantType.QInt8, weight_type=QuantType.QInt8,
            )  # fmt: skip
        return _with_integer_ports(onnx.load(target))


def _with_integer_ports(model: onnx.ModelProto) -> onnx.ModelProto:
    """Take the quantisation of the input and the dequantisation of the output out of a model; the input has channels last."""
    graph = model.graph
    (quantise,) = (node for node in graph.node if node.input[0] == "input")
    (dequantise,) = (node for node in graph.node if node.output[0] == graph.output[0].name)
    assert (quantise.op_type, dequantise.op_type) == ("QuantizeLinear", "DequantizeLinear")
    _, channels, *size = (each.dim_value for each in graph.input[0].type.tensor_type.shape.dim)
    classes = [each.dim_value for each in graph.output[0].type.tensor_type.shape.dim]
    first = helper.make_node("Transpose", ["input"], [quantise.output[0]], name="channels_first", perm=[0, 3, 1, 2])
    kept = [node for node in graph.node if node not in (quantise, dequantise)]
    del graph.node[:], graph.input[:], graph.output[:]
    graph.node.extend([first, *kept])
    graph.input.append(helper.make_tensor_value_info("input", TensorProto.INT8, (1, *size, channels)))
    graph.output.append(helper.make_tensor_value_info(dequantise.input[0], TensorProto.INT8, classes))
    return model


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence recommendations of the quantiser."""
    logger = logging.getLogger()
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def minilm_int8() -> onnx.ModelProto:
    """Encoder of the size of MiniLM-L6 (Wang et al., 2020), 64 tokens of 2000 words, dynamically quantised."""
    return dynamically_quantised(encoder(layers=6, width=384, tokens=64, heads=12, words=2000))


def mobilenet_v2_int8() -> onnx.ModelProto:
    """MobileNet-V2 of width 0.35 for pictures of 144 × 144: `mbv2-320kB` of MCUNet's model zoo."""
    return statically_quantised(mobilenet_v2(0.35, 144))


def mcunet_vww_int8() -> onnx.ModelProto:
    return statically_quantised(mcunet_vww())
