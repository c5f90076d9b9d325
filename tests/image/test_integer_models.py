"""Integer models equal ONNX Runtime's on every core: words of four bytes, clamps by integers, depthwise sums."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from passfit import api
from passfit.targets import get_target, how_to_run

from ..models import model_of

pytestmark = [pytest.mark.slow, pytest.mark.tvm]
SCALE = np.float32(0.05)


def convolution(channels: int, filters: int, taps: int, groups: int, dtype, zero: int, pads: int) -> onnx.ModelProto:
    """Make a QLinearConv with a scale of its own for each filter, over 7 × 6 places."""
    random = np.random.default_rng(taps)
    constants = {
        "xs": SCALE, "xz": np.array(zero, dtype), "w": random.integers(-127, 128, (filters, channels // groups, taps, taps)).astype(np.int8),
        "ws": random.uniform(0.001, 0.01, filters).astype(np.float32), "wz": np.zeros(filters, np.int8), "ys": np.float32(0.2),
        "yz": np.array(0, dtype), "b": random.integers(-500, 500, filters).astype(np.int32),
    }  # fmt: skip
    node = helper.make_node(
        "QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"], ["y"], pads=[pads] * 4, group=groups
    )
    kind = TensorProto.INT8 if dtype is np.int8 else TensorProto.UINT8
    size = [extent + 2 * pads - taps + 1 for extent in (7, 6)]
    return model_of([node], {"x": (1, channels, 7, 6)}, {"y": (1, filters, *size)}, constants, dtype=kind)


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
    target = get_target(name)
    if how_to_run(target).command is None:
        pytest.skip(how_to_run(target).how)
    onnx.save(convolution(*form), tmp_path / "conv.onnx")
    search = api.SearchSettings(workers=0)  # with channels last where the core multiplies words
    report = api.compile_model(tmp_path / "conv.onnx", target, out=tmp_path / "out", search=search)
    assert report.measured.ran and report.measured.max_abs_error == 0 and not report.defects
