"""Integer models equal ONNX Runtime's on every core: words of four bytes, vectors of sixteen, clamps by integers, depthwise sums."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from passfit import api
from passfit.targets import get_target, how_to_run

from ..models import model_of

pytestmark = [pytest.mark.slow, pytest.mark.tvm]
SCALE = np.float32(0.05)


def quantised(number: int, channels: int, filters: int, taps: int, groups: int, dtype, zero: int, **attributes):
    """Make a QLinearConv with a scale of its own for each filter, and its constants."""
    random = np.random.default_rng(taps)
    names = [f"{name}{number}" for name in ("xs", "xz", "w", "ws", "wz", "ys", "yz", "b")]
    constants = (
        SCALE, np.array(zero, dtype), random.integers(-127, 128, (filters, channels // groups, taps, taps)).astype(np.int8),
        random.uniform(0.001, 0.01, filters).astype(np.float32), np.zeros(filters, np.int8), np.float32(0.2),
        np.array(zero, dtype), random.integers(-500, 500, filters).astype(np.int32),
    )  # fmt: skip
    node = helper.make_node("QLinearConv", [f"x{number}", *names], [f"x{number + 1}"], group=groups, **attributes)
    return node, dict(zip(names, constants))


def convolution(
    channels, filters, taps, groups, dtype, zero, pads, size=(7, 6), strides=1, before=0
) -> onnx.ModelProto:
    """Make a convolution; with one of `before` channels and one tap before it, its data have a layout of choice."""
    own = {"pads": [pads] * 4, "strides": [strides] * 2}
    chain = [quantised(0, before, channels, 1, 1, dtype, zero)] if before else []
    chain.append(quantised(len(chain), channels, filters, taps, groups, dtype, zero, **own))
    kind = TensorProto.INT8 if dtype is np.int8 else TensorProto.UINT8
    result = [(extent + 2 * pads - taps) // strides + 1 for extent in size]
    constants = {name: value for _, own in chain for name, value in own.items()}
    shapes = {"x0": (1, before or channels, *size)}, {f"x{len(chain)}": (1, filters, *result)}
    return model_of([node for node, _ in chain], *shapes, constants, dtype=kind)


M55 = get_target("mps3-an547")


def assert_equal(target, model, folder):
    if how_to_run(target).command is None:
        pytest.skip(how_to_run(target).how)
    onnx.save(model, folder / "conv.onnx")
    search = api.SearchSettings(workers=0)  # with channels last where the core multiplies words or vectors
    report = api.compile_model(folder / "conv.onnx", target, out=folder / "out", search=search)
    assert report.measured.ran and report.measured.max_abs_error == 0 and not report.defects


@pytest.mark.parametrize("name", ["mps2-an386", "mps3-an547", "rv32-virt"])
@pytest.mark.parametrize(
    "form",
    [
        (8, 6, 3, 1, np.int8, -7, 1),
        (16, 5, 1, 1, np.uint8, 131, 0),
        (3, 4, 3, 1, np.uint8, 0, 1),
        (8, 8, 3, 8, np.int8, 5, 1),
    ],
    ids=["3x3", "1x1", "3 channels", "depthwise"],
)
def test_a_quantised_convolution_is_equal(tmp_path, name, form):
    assert_equal(get_target(name), convolution(*form), tmp_path)


@pytest.mark.parametrize("target", [M55, replace(M55, cpu="cortex-m85")], ids=lambda target: target.cpu)
@pytest.mark.parametrize(
    "form",
    [
        (17, 8, 3, 1, np.uint8, 131, 1),
        (40, 10, 1, 1, np.int8, 127, 0),
        (64, 16, 5, 1, np.int8, -128, 2),
        (17, 17, 3, 17, np.uint8, 0, 1),
    ],
    ids=["3x3", "1x1", "5x5", "depthwise"],
)
def test_vectors_of_bytes_are_equal(tmp_path, target, form):
    assert_equal(target, convolution(*form, strides=2, before=form[0]), tmp_path)


@pytest.mark.parametrize("name", ["mps2-an386", "mps3-an547"])
def test_columns_of_a_ring_are_no_neighbours(tmp_path, name):
    """Regions over columns, which a search tries, read no run of several columns in place."""
    assert_equal(get_target(name), convolution(64, 24, 5, 1, np.int8, 127, 0, size=(8, 22), before=4), tmp_path)
