"""The forms hold what they say: valid models, the same every time, that run; a table of them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest


@pytest.fixture
def forms(scripts):
    from forms import FORMS

    return FORMS


def test_there_are_as_many_networks_as_said(forms):
    assert len(forms) == 52 and sum(name.endswith("-large") for name in forms) == 18


@pytest.mark.tvm
def test_every_network_is_valid_the_same_twice_and_its_results_are_of_order_one(forms):
    import onnxruntime as ort

    random = np.random.default_rng(0)
    for name, build in forms.items():
        model = build()
        assert model.SerializeToString(deterministic=True) == build().SerializeToString(deterministic=True), name
        onnx.checker.check_model(model, full_check=True)
        read = {tensor for node in model.graph.node for tensor in node.input}
        assert [each.name for each in model.graph.initializer if each.name not in read] == [], name
        session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        inputs = {
            port.name: random.standard_normal(port.shape, dtype=np.float32)
            if "float" in port.type
            else random.integers(0, 60, port.shape)
            for port in session.get_inputs()
        }
        for result in session.run(None, inputs):
            assert np.isfinite(result).all() and 0.001 < result.std() < 10, name


@pytest.fixture
def rows(scripts):
    from models import Model

    def kernel(step: int, ns: int, least: int) -> dict:
        return {
            "step": step,
            "kernel": f"kernel{step}",
            "nodes": ["n"],
            "ns": ns,
            "least_ns": least,
            "cycles": 3 * ns,
            "operations": 7,
        }

    def row(ours: float, *kernels: dict) -> dict:
        return {
            "compile": {"processor": 12.0},
            "footprint": {"best": {"ram": 1024}},
            "kernels": {"run_ns": sum(each["ns"] for each in kernels), "kernels": list(kernels)},
            "latency": {"shipped": [2.0, 1.0], "passfit": [ours]},
        }

    return {
        Model("fast", "a"): row(0.5, kernel(0, 500, 400), kernel(1, 100, 5)),
        Model("slow", "b"): row(8.0, kernel(0, 8000, 4000)),
        Model("broken", "c"): {"failed": "for a | reason"},
    }


def test_the_table_names_the_slowest_kernel_the_mean_the_worst_and_the_cliffs(rows):
    from form_tables import table

    text = table(rows, ["* head"])
    assert "| **geometric mean** (2) | | | **2.00** |" in text
    assert "Worst: slow, 8.00. Above 3: slow 8.0." in text and "Spearman 1.000" in text
    assert "| 1.0 KiB | 12 | k00 kernel0 | 83% | 0.80 |" in text
    assert "| fast | k01 kernel1 | 1 | 0.1 | 0.000 | 0.050 | 17% |" in text
    assert "| broken | failed: for a \\| reason |" in text
    widths = {
        len(line.split(" | "))
        for line in text.split("## ")[0].split("\n")
        if line.startswith(("| fast", "| slow", "| model"))
    }
    assert len(widths) == 1


def test_a_table_without_rows_is_a_table(scripts):
    from form_tables import table

    assert "* models: 0, 0 of them failed" in table({}, [])
