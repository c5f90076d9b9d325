"""Weights of 4 bits and by blocks: executed libraries read them as they are in the file, and compute the same."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from passfit.targets import get_target, how_to_run

from ..frontend.onnx_nodes import NodeCase
from ..models import model_of, run, save
from .building import HOST, compile_and_run
from .test_integer_nodes import EMULATED

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3"),
]

SEQUENCE = ("legalize", "fold-constant", "fuse-operators", "share")
RNG = np.random.default_rng(11)


def _vendors(
    length: int, channels: int, block: int, bits: int, zeros: bool, dtype: type = np.float32
) -> tuple[onnx.ModelProto, np.ndarray]:
    """Return a MatMulNBits."""
    blocks = -(-length // block)
    constants = {
        "w": RNG.integers(0, 256, (channels, blocks, block * bits // 8)).astype(np.uint8),
        "s": (RNG.random((channels, blocks)) / 30).astype(dtype),
    }
    if zeros:
        constants["z"] = RNG.integers(0, 256, (channels, -(-blocks * bits // 8))).astype(np.uint8)
    options = {"K": length, "N": channels, "bits": bits, "block_size": block}
    node = helper.make_node("MatMulNBits", ["x", *constants], ["y"], name="m", domain="com.microsoft", **options)
    x = RNG.standard_normal((3, length)).astype(dtype)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return model_of([node], {"x": x.shape}, ["y"], constants, dtype=kind, domain="com.microsoft", opset=21), x


def _weights(
    kind: str, shape: tuple[int, ...], axis: int, block: int, reader: str
) -> tuple[onnx.ModelProto, np.ndarray]:
    """Return a model whose weights alone are quantised: by channels, or by blocks along `axis`."""
    dtype = np.dtype(getattr(ml_dtypes, kind, None) or kind)
    info = ml_dtypes.iinfo(dtype)
    of_scale = (
        tuple(-(-extent // block) if place == axis else extent for place, extent in enumerate(shape))
        if block
        else (shape[axis],)
    )
    constants = {
        "w": RNG.integers(int(info.min), int(info.max) + 1, shape).astype(dtype), "s": (RNG.random(of_scale) / 30).astype(np.float32),
        "z": RNG.integers(0, int(info.max) + 1, of_scale).astype(dtype),
    }  # fmt: skip
    options = {"axis": axis, **({"block_size": block} if block else {})}
    nodes, dtypes = [helper.make_node("DequantizeLinear", ["w", "s", "z"], ["f"], name="d", **options)], {}
    if reader == "Gather":
        x = RNG.integers(0, shape[0], (4,))
        nodes.append(helper.make_node("Gather", ["f", "x"], ["y"], name="g"))
        dtypes["x"] = TensorProto.INT64
    elif reader == "Conv":
        x = RNG.standard_normal((1, shape[1], 7, 7)).astype(np.float32)
        nodes.append(helper.make_node("Conv", ["x", "f"], ["y"], name="c", pads=[1, 1, 1, 1]))
    else:
        x = RNG.standard_normal((3, shape[1 if reader == "Gemm" else 0])).astype(np.float32)
        nodes.append(
            helper.make_node(reader, ["x", "f"], ["y"], name="m", **({"transB": 1} if reader == "Gemm" else {}))
        )
    model = model_of(nodes, {"x": x.shape}, ["y"], constants, dtypes=dtypes, opset=21)
    model.ir_version = 10
    return model, x


MODELS = {
    "nbits": _vendors(64, 24, 32, 4, False),
    "nbits, zeros, a last block of six": _vendors(70, 24, 16, 4, True),
    "nbits of eight": _vendors(64, 24, 32, 8, True),
    "nbits of halves": _vendors(64, 24, 32, 4, True, np.float16),
    "product": _weights("uint4", (32, 24), 1, 0, "MatMul"),
    "odd product": _weights("int4", (33, 25), 1, 0, "MatMul"),
    "turned product by blocks": _weights("int4", (24, 32), 1, 16, "Gemm"),
    "product by blocks of bytes": _weights("int8", (32, 24), 0, 8, "MatMul"),
    "rows of a table": _weights("uint4", (40, 24), 0, 0, "Gather"),
    "convolution": _weights("int4", (16, 6, 3, 3), 0, 0, "Conv"),
    "convolution by blocks": _weights("int4", (16, 6, 3, 3), 1, 3, "Conv"),
}


def _cases() -> list[NodeCase]:
    return [
        NodeCase(name, name, model, {"x": x}, tuple(run(model, {"x": x})), 1e-5, 1e-5)
        for name, (model, x) in MODELS.items()
    ]


@pytest.mark.parametrize(("name", "sequence"), [("", ("legalize",)), *((each, SEQUENCE) for each in ("", *EMULATED))])
def test_libraries_compute_what_onnx_runtime_does(name: str, sequence: tuple[str, ...], tmp_path: Path) -> None:
    target = get_target(name) if name else HOST
    if name and not how_to_run(target).command:
        pytest.skip(how_to_run(target).how)
    outcomes = compile_and_run(_cases(), sequence, tmp_path, target)
    wrong = {
        case.name: str(outcomes[case.name])[:300]
        for case in _cases()
        if not outcomes[case.name].outputs
        or not np.allclose(
            outcomes[case.name].outputs[0],
            case.outputs[0],
            rtol=1e-3 if case.name.endswith("halves") else 1e-4,
            atol=1e-4,
        )
    }
    assert wrong == {}


@pytest.mark.parametrize("name", MODELS)
def test_weights_take_the_bytes_of_the_file(name: str, tmp_path: Path) -> None:
    from passfit.frontend.canonicalise import import_model
    from passfit.frontend.relax.to_relax import to_relax
    from passfit.passes.sequence.replay import replay
    from passfit.passes.sequence.sequence import Sequence

    model = MODELS[name][0]
    imported = import_model(save(model, tmp_path))
    lowered, _ = replay(Sequence.parse(SEQUENCE), to_relax(imported), imported, name)
    inside = sum(len(tensor.raw_data) for tensor in model.graph.initializer)
    small = 300 + inside // 20  # what is below 256 elements takes a byte each; the odd one of a pair
    assert sum(each.nbytes for each in lowered.weights) <= inside + small
