"""Forms that no implementation takes are refused by name."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from passfit.errors import ModelError
from passfit.frontend.canonicalise import canonicalize

from ...models import model_of


def filters(number: int, channels: int) -> np.ndarray:
    return np.ones((number, channels, 3, 3), np.uint8)


@pytest.mark.parametrize(("groups", "number", "channels"), [(1, 4, 2), (3, 4, 1), (2, 4, 3)])
@pytest.mark.parametrize("quantised", [False, True])
def test_filters_of_other_channels_are_refused(groups: int, number: int, channels: int, quantised: bool):
    w = filters(number, channels)
    if quantised:
        one, zero = np.ones((), np.float32), np.zeros((), np.uint8)
        names = ["x", "s", "z", "w", "s", "z", "s", "z"]
        nodes = [helper.make_node("QLinearConv", names, ["y"], group=groups)]
        model = model_of(
            nodes,
            {"x": [1, 3, 8, 8]},
            ["y"],
            {"s": one, "z": zero, "w": w},
            dtypes={"x": TensorProto.UINT8, "y": TensorProto.UINT8},
        )
    else:
        nodes = [helper.make_node("Conv", ["x", "w"], ["y"], group=groups)]
        model = model_of(nodes, {"x": [1, 3, 8, 8]}, ["y"], {"w": w.astype(np.float32)})
    with pytest.raises(ModelError, match=f"{number} filters of {channels} channels in {groups} groups do not fit 3"):
        canonicalize(model)
