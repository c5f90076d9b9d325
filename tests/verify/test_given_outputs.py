"""A quantised library is compared with the model as given: within its rounding, by units, and by its decisions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from passfit.errors import NumericError
from passfit.frontend.canonical.read_onnx import NEWEST
from passfit.frontend.canonicalise import import_model
from passfit.frontend.given_model import given_model
from passfit.verify.integers.given_outputs import GivenOutputs, given_outputs
from passfit.verify.integers.random_rounding import RandomRounding
from passfit.verify.reference import NoReference, Reference

from ..frontend.quantised.networks import SIGNS, network, quantised
from ..models import model_of, save


def outputs_of(path: Path) -> tuple[onnx.ModelProto, GivenOutputs | None]:
    model = import_model(path)
    return model, given_outputs(model, given_model(path), 1e-4)


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
@pytest.mark.parametrize("signs", SIGNS)
def test_the_exact_arithmetic_agrees_with_the_file_within_units(tmp_path: Path, form: str, signs: str) -> None:
    model, found = outputs_of(quantised(tmp_path, form, signs))
    assert found is not None and all(0 < unit < 0.1 for unit in found.units.values())
    reference = Reference(model)
    agreement = found.agreement([reference(each) for each in found.inputs])
    assert agreement.cases >= 3 and agreement.max_lsb <= 3
    assert agreement.same_decisions >= 0.9 and agreement.differing <= 0.3


def test_units_and_decisions_are_counted(tmp_path: Path) -> None:
    path = quantised(tmp_path)
    _, found = outputs_of(path)
    outputs = [Reference(onnx.load(path))(each) for each in found.inputs]
    ((name, unit),) = found.units.items()
    same = found.agreement(outputs)
    assert (same.max_lsb, same.differing, same.same_decisions) == (0, 0, 1)
    changed = outputs[1][name].copy()
    changed[0, int(changed[0].argmin())] += np.float32(2 * unit)
    apart = found.agreement([outputs[0], {name: changed}, *outputs[2:]]).outputs[0]
    assert (apart.differing, apart.max_lsb) == (1, 2)


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
@pytest.mark.parametrize("layer", range(5))
def test_a_wrong_layer_is_refused(tmp_path: Path, form: str, layer: int) -> None:
    """Negate the weights of one layer and turn their rows around in the canonical model, as a wrong import would."""
    model, found = outputs_of(quantised(tmp_path, form))
    layers = [node for node in model.graph.node if node.op_type in ("QLinearConv", "QLinearMatMul")]
    weights = next(each for each in model.graph.initializer if each.name == layers[layer].input[3])
    weights.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(-numpy_helper.to_array(weights)[::-1]), weights.name))
    reference = Reference(model)
    with pytest.raises(NumericError, match="differ in output"):
        found.agreement([reference(each) for each in found.inputs])


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
def test_rounding_at_random_moves_outputs_by_little(tmp_path: Path, form: str) -> None:
    model = given_model(quantised(tmp_path, form))
    x = {"x": np.random.default_rng(0).normal(size=(1, 3, 8, 8)).astype(np.float32)}
    plain, (moved, again) = Reference(model)(x), (RandomRounding(model)(x, 1) for _ in range(2))
    for name, value in plain.items():
        assert np.array_equal(moved[name], again[name])
        assert 0 < np.abs(moved[name] - value).max() < 0.2 * np.ptp(value) + 0.1


@pytest.mark.parametrize("version", range(10, NEWEST + 1))
def test_rounding_moves_in_every_operator_set(version: int) -> None:
    """Whatever set a file is of: an operator that draws noise is not in ONNX Runtime's newest."""
    kinds = ["int8", "uint8"] + ["int16", "uint16"] * (version >= 21)
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", f"z {kind}"], [kind]) for kind in kinds]
    zeros = {f"z {kind}": np.zeros((), kind) for kind in kinds}
    types = {kind: helper.np_dtype_to_tensor_dtype(np.dtype(kind)) for kind in kinds}
    constants = {"s": np.float32(0.1), **zeros}
    model = model_of(nodes, {"x": [99]}, {kind: [99] for kind in kinds}, constants, dtypes=types, opset=version)
    model.ir_version = 10
    x = {"x": np.linspace(-9, 30, 99, dtype=np.float32)}
    plain, moved = Reference(model)(x), RandomRounding(model)(x, 0)
    for kind in kinds:
        apart = moved[kind].astype(np.int64) - plain[kind].astype(np.int64)
        assert set(apart) == {-1, 0, 1}


def test_a_failure_of_the_noise_is_not_one_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise NoReference("no kernel for a node of ours")

    monkeypatch.setattr(RandomRounding, "__init__", fail)
    found = outputs_of(quantised(tmp_path))[1]
    assert found is not None and not found.outputs and "which passfit makes" in found.unknown


def test_a_float_model_has_none(tmp_path: Path) -> None:
    assert outputs_of(save(network(), tmp_path))[1] is None


def test_a_canonical_model_is_all_that_there_is(tmp_path: Path) -> None:
    assert given_outputs(import_model(quantised(tmp_path)), None, 1e-4) is None


def test_floats_that_no_scale_describes_have_decisions_alone(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s"], ["f"], name="d"), helper.make_node("Add", ["f", "f"], ["t"], name="a"),
        helper.make_node("QuantizeLinear", ["t", "s", "z"], ["q"], name="q"), helper.make_node("DequantizeLinear", ["q", "s", "z"], ["e"], name="e"),
        helper.make_node("Exp", ["e"], ["y"], name="exp"),
    ]  # fmt: skip
    constants = {"s": np.float32(0.02), "z": np.int8(0)}
    model, found = outputs_of(
        save(model_of(nodes, {"x": [2, 4]}, ["y"], constants, dtypes={"x": TensorProto.INT8}), tmp_path)
    )
    (output,) = found.agreement([Reference(model)(each) for each in found.inputs]).outputs
    assert (output.max_lsb, output.differing) == (None, None) and output.decisions == output.same_decisions > 0


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
def test_no_import_of_a_quantised_model_is_blamed_where_it_is_right(tmp_path: Path, form: str) -> None:
    from passfit.frontend.given_model import given_model
    from passfit.verify.blame_import import blame_import

    path = quantised(tmp_path, form)
    model, _ = outputs_of(path)
    given = given_model(path)
    assert given is not None and blame_import(model, given, 0) == ""
