"""A quantised library is compared with the model as given: by units, and by its decisions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from passfit import api
from passfit.frontend.canonical.canonicalise import canonicalize, import_model
from passfit.verify.integers.given_outputs import _KEPT, given_outputs, mark_given, rows_of
from passfit.verify.reference import Reference

from ..frontend.quantised.networks import SIGNS, network, quantised
from ..models import model_of, save


def marked(path: Path) -> onnx.ModelProto:
    model = import_model(path)
    mark_given(model, path, None, None)
    return model


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
@pytest.mark.parametrize("signs", SIGNS)
def test_the_exact_arithmetic_agrees_with_the_file_within_units(tmp_path: Path, form: str, signs: str) -> None:
    model = marked(quantised(tmp_path, form, signs))
    found = given_outputs(model)
    assert found is not None and all(0 < unit < 0.1 for unit in found.units.values())
    reference = Reference(model)
    agreement = found.agreement([reference(each) for each in found.inputs])
    assert agreement.cases >= 3 and agreement.max_lsb <= 3
    assert agreement.same_decisions >= 0.9 and agreement.differing <= 0.3


def test_units_and_decisions_are_counted(tmp_path: Path) -> None:
    path = quantised(tmp_path)
    model = marked(path)
    found = given_outputs(model)
    outputs = [Reference(onnx.load(path))(each) for each in found.inputs]
    (name, unit), = found.units.items()
    same = found.agreement(outputs)
    assert (same.max_lsb, same.differing, same.same_decisions) == (0, 0, 1)
    changed = outputs[1][name].copy()
    changed[0, int(changed[0].argmin())] += np.float32(1000 * unit)
    apart = found.agreement([outputs[0], {name: changed}, *outputs[2:]]).outputs[0]
    assert (apart.differing, apart.max_lsb, apart.decisions - apart.same_decisions) == (1, 1000, 1)


def test_the_marks_of_an_import_are_kept_and_make_equal_bytes(tmp_path: Path) -> None:
    path = quantised(tmp_path)
    one, other = marked(path), marked(path)
    assert one.SerializeToString(deterministic=True) == other.SerializeToString(deterministic=True)
    mark_given(one, save(network(), tmp_path, "other.onnx"), None, None)
    assert one.metadata_props == other.metadata_props


def test_an_import_carries_the_outputs_to_later_steps(tmp_path: Path) -> None:
    path = quantised(tmp_path)
    api.import_model_file(path, None, None, tmp_path / "canonical" / "model.onnx")
    later = marked(tmp_path / "canonical" / "model.onnx")
    found, expected = given_outputs(later), given_outputs(marked(path))
    assert found is not None and expected is not None and found.units == expected.units
    for one, other in zip(found.rows, expected.rows, strict=True):
        assert all(np.array_equal(one[name], other[name]) for name in found.units)


def test_an_import_of_before_there_were_such_outputs_has_none(tmp_path: Path) -> None:
    api.import_model_file(quantised(tmp_path), None, None, tmp_path / "canonical" / "model.onnx")
    model = onnx.load(tmp_path / "canonical" / "model.onnx")
    kept = {each.key: each.value for each in model.metadata_props if each.key != "passfit.given"}
    helper.set_model_props(model, kept)
    assert given_outputs(marked(save(model, tmp_path, "old.onnx"))) is None


def test_a_float_model_is_not_marked(tmp_path: Path) -> None:
    model = marked(save(network(), tmp_path))
    assert given_outputs(model) is None and not model.metadata_props


def test_floats_that_no_scale_describes_have_decisions_alone(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s"], ["f"], name="d"), helper.make_node("Add", ["f", "f"], ["t"], name="a"),
        helper.make_node("QuantizeLinear", ["t", "s", "z"], ["q"], name="q"), helper.make_node("DequantizeLinear", ["q", "s", "z"], ["e"], name="e"),
        helper.make_node("Exp", ["e"], ["y"], name="exp"),
    ]  # fmt: skip
    constants = {"s": np.float32(0.02), "z": np.int8(0)}
    path = save(model_of(nodes, {"x": [2, 4]}, ["y"], constants, dtypes={"x": TensorProto.INT8}), tmp_path)
    model = marked(path)
    found = given_outputs(model)
    (output,) = found.agreement([Reference(canonicalize(model))(each) for each in found.inputs]).outputs
    assert (output.max_lsb, output.differing) == (None, None) and output.decisions == output.same_decisions > 0


@given(st.lists(st.integers(0, 40), min_size=0, max_size=4))
def test_kept_rows_are_whole_and_few(shape: list[int]) -> None:
    value = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    rows = rows_of(value)
    width = shape[-1] if shape else 1
    assert rows.shape[1] == width and rows.size <= max(_KEPT, width)
    every = {tuple(row) for row in value.reshape(-1, width)} if value.size else set()
    assert all(tuple(row) in every for row in rows if width)
    assert not value.size or len(rows) == min(value.size // width, max(1, _KEPT // width))
