"""The architectures of the zoo in float16, as converters write it, narrow and of small pictures: each compiles and is right."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import numpy as np
import pytest

from benchmarks.zoo import BUILDERS, network
from passfit.targets.native import native_target

from .campaign import preload
from .cases import Case
from .halve import halve
from .reduce import verdict_of
from .reference import expected

SHAPE, NARROWER, LEAST = (1, 3, 64, 64), 16, 4
#: taken in every run: the first reads a normalisation twice, the second is small
_ALWAYS = (("efficientnet_b0", 0.0), ("squeezenet1.1", 0.2))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(native_target() is None, reason="no target of the catalogue runs natively on this machine"),
]


class Narrow(network.Network):
    """Network of a small picture, with a part of the channels."""

    def __init__(self, name: str, shape: network.Shape = SHAPE, seed: int = 0):
        super().__init__(name, SHAPE, seed)

    def conv(
        self, x: str, channels: int, kernel: int = 3, stride: int = 1, *, groups: int = 1, **options: object
    ) -> str:
        if groups > 1 or channels == self.channels(x):  # as many as there are
            channels = groups = self.channels(x)
        else:
            channels = max(LEAST, channels // NARROWER)
        return super().conv(x, channels, kernel, stride, groups=groups, **options)

    def conv_transpose(self, x: str, channels: int, factor: int = 2) -> str:
        return super().conv_transpose(x, max(LEAST, channels // NARROWER), factor)


@pytest.fixture(scope="module", autouse=True)
def loaded() -> Iterator[None]:
    preload()
    yield


@pytest.mark.parametrize(
    ("name", "left"),
    [
        pytest.param(name, left, id=f"{name}-{kind}", marks=() if (name, left) in _ALWAYS else pytest.mark.nightly)
        for name in BUILDERS
        for kind, left in (("whole", 0.0), ("islands", 0.2))
    ],
)
def test_float16_of_an_architecture_compiles_and_is_right(
    name: str, left: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = BUILDERS[name]
    monkeypatch.setattr(importlib.import_module(builder.__module__), "Network", Narrow)
    random = np.random.default_rng(list(BUILDERS).index(name))
    model, inputs = halve(builder(), {"input": random.standard_normal(SHAPE).astype(np.float32)}, random, left)
    case = Case("half" if left == 0 else "islands", model, inputs, expected(model, inputs))
    assert verdict_of(case).verdict == "ok", verdict_of(case)
