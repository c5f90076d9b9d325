"""A quantised model stands beside its float twin: four times the bytes by the same sequence."""

from __future__ import annotations

from pathlib import Path

import pytest

from passfit.frontend.imported_model import load
from passfit.search.evaluate.beside_floats import beside_floats
from passfit.targets import get_target

from ...frontend.quantised.networks import network, quantised
from ...models import save

TARGET = get_target("rpi4")


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
def test_floats_take_about_four_times_the_ram(tmp_path: Path, form: str) -> None:
    found = beside_floats(load(quantised(tmp_path, form)), TARGET)
    assert found is not None and found.integer_share == 1
    assert 2 * found.integers.ram < found.floats.ram <= 4 * found.integers.ram + 1024
    plain = beside_floats(load(save(network(), tmp_path)), TARGET)
    assert plain is None


def test_the_twin_takes_the_memory_of_the_model_before_quantisation(tmp_path: Path) -> None:
    from passfit.frontend.imported_model import port_names
    from passfit.frontend.relax.to_relax import to_relax
    from passfit.search.evaluate.beside_floats import _memory

    found = beside_floats(load(quantised(tmp_path)), TARGET)
    original = load(save(network(), tmp_path))
    expected = _memory(to_relax(original.onnx), port_names(original.onnx), "m", TARGET)
    assert found.floats.ram == pytest.approx(expected.ram, rel=0.05)
    assert found.floats.weights == pytest.approx(expected.weights, rel=0.05, abs=256)
