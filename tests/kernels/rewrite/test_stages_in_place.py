"""Split a fusion of two convolutions whose result grows over an operand: its rows lie apart, channel by channel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tvm")

from passfit import api
from passfit.passes.sequence.replay import replay
from passfit.passes.sequence.sequence import Sequence
from passfit.targets import get_target

from ...models import NodeBuilder, save
from ..programs import random_inputs, run

pytestmark = [pytest.mark.tvm, pytest.mark.slow]
WHOLE = ("legalize", "fold-constant", "fuse-by-mapping", "order{by=given}")


@pytest.mark.parametrize("rows", [1, 2, 4])
@pytest.mark.parametrize("in_place", [0, 2])
def test_the_rows_are_those_of_the_whole(tmp_path: Path, rows: int, in_place: int):
    build = NodeBuilder()

    def swish(value):
        return build.node("Mul", value, build.node("Sigmoid", value))

    x = swish(build.node("Conv", "x", build.weight(24, 8, 3, 3), pads=[1, 1, 1, 1]))
    x = build.node("ConvTranspose", x, build.weight(24, 24, 2, 2), strides=[2, 2])
    x = swish(build.node("Conv", x, build.weight(24, 24, 3, 3), pads=[1, 1, 1, 1]))
    x = swish(build.node("Conv", x, build.weight(8, 24, 1, 1)))
    model = api.load(save(build.model([1, 8, 20, 16], x), tmp_path))

    def lowered(*more):
        return replay(
            Sequence.parse([*WHOLE, *more]), model.graph, model.onnx, model.name, get_target("x86-64").machine
        )[0]

    whole = lowered()
    inputs = random_inputs(whole)
    for ours, reference in zip(
        run(lowered(f"split-rows{{steps=1-2,rows={rows},in_place={in_place}}}"), inputs),
        run(whole, inputs),
        strict=True,
    ):
        np.testing.assert_allclose(ours, reference, rtol=1e-5, atol=1e-6)
