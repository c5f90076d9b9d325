"""Give a model the inputs and outputs of the device: all later steps, and the reference, see a file that has them.

The forms travel in the metadata of the model, as the origin's figures do: see `input_ports` for those of inputs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import ModelError, did_you_mean
from ...source.import_options import ImportOptions
from ..bind_shapes import bind_inputs
from ..node_builder import Names, NodeBuilder
from ..read_onnx import add_metadata, metadata_of, operator_set
from .inputs import convert, convert_input
from .integers import integer_input, integer_output
from .outputs import convert_output

if TYPE_CHECKING:
    import onnx

_PORTS = "passfit.ports"
Forms = dict[str, dict[str, Any]]


def bind_ports(model: onnx.ModelProto, options: ImportOptions) -> list[str]:
    """Bind inputs to shapes and values, and ports to their forms, in place; return in words what is assumed.

    Raises ModelError for names, shapes, values and forms that are not the model's.
    """
    assumed = [f"input {each}" for each in bind_inputs(model, options)]
    return assumed + apply_ports(model, options)


def apply_ports(model: onnx.ModelProto, options: ImportOptions) -> list[str]:
    """Give inputs and outputs of `model` their forms, in place; return in words which stay floats. Raises ModelError."""
    inputs, outputs = options.input_ports, options.output_ports
    if not (inputs or outputs or options.integer_ports):
        return []
    known = [value.name for value in model.graph.input]
    for name in inputs:
        if name not in known:
            raise ModelError(f"The model has no input '{name}'; it has {', '.join(known)}.", did_you_mean(name, known))
    forms: dict[str, Forms] = {"inputs": {}, "outputs": {}}
    said: list[str] = []
    if options.integer_ports:
        computed = {name for name, port in inputs.items() if port.computes}
        named = {name for name, port in outputs.items() if port != type(port)(logits=port.logits, layout=port.layout)}
        for name, port in outputs.items():
            if port.logits:
                forms["outputs"][name] = convert_output(model, name, type(port)(logits=True))
                outputs[name] = port.model_copy(update={"logits": False})
        said = _leave_integers(model, computed, named, forms)
    for name, port in inputs.items():
        was, form = forms["inputs"].get(name), convert_input(model, name, port)
        if was is not None:  # the order of integers alone changed
            form = {
                **form,
                **{key: was[key] for key in _OF_NUMBERS},
                "file": {**form["file"], "dtype": was["file"]["dtype"]},
            }
        forms["inputs"][name] = form
    for name, port in outputs.items():
        forms["outputs"].setdefault(name, {}).update(convert_output(model, name, port))
    write_forms(model, forms)
    return said


#: what the form of an integer input says of its numbers
_OF_NUMBERS = ("dtype", "quantised", "scale", "zero_point")


def _leave_integers(model: onnx.ModelProto, computed: set[str], named: set[str], forms: dict[str, Forms]) -> list[str]:
    """Make quantised inputs and outputs integers, unless their form says otherwise; return which stay."""
    said = []
    for kind, change, ports, others in (
        ("input", integer_input, model.graph.input, computed),
        ("output", integer_output, model.graph.output, named),
    ):
        for name in [value.name for value in ports if value.name not in others]:
            found = change(model, name)
            if isinstance(found, dict):
                forms[f"{kind}s"].setdefault(name, {}).update(found)
            elif found:
                said.append(f"{kind} '{name}' stays a float: {found}")
    if said and not any(forms.values()) and not computed and not named:
        raise ModelError(
            f"No input or output of the model is quantised: the {said[0]}.",
            "Quantise the model first (QuantizeLinear of its inputs, DequantizeLinear of its outputs), or leave --io out.",
        )
    return said


def write_forms(model: onnx.ModelProto, forms: Mapping[str, Forms]) -> None:
    """Write the forms of inputs and outputs into the metadata of a model, in place."""
    add_metadata(model, {_PORTS: json.dumps(forms, sort_keys=True)})


def port_forms(model: onnx.ModelProto) -> dict[str, Forms]:
    """Return the forms of inputs and outputs that differ from the file, which an import wrote."""
    kept = metadata_of(model)
    return json.loads(kept[_PORTS]) if _PORTS in kept else {"inputs": {}, "outputs": {}}


def file_form_model(model: onnx.ModelProto, name: str) -> onnx.ModelProto | None:
    """Return a model that converts the input `name` from the device's form to the file's; None where they are one."""
    from onnx import helper

    form = port_forms(model)["inputs"].get(name)
    if form is None:
        return None
    version = max(operator_set(model.opset_import), 21 if form.get("quantised") else 0)
    ports = [
        helper.make_tensor_value_info(port, helper.np_dtype_to_tensor_dtype(np.dtype(each["dtype"])), each["shape"])
        for port, each in ((name, form), ("file", form["file"]))
    ]
    build = NodeBuilder(name, Names(helper.make_graph([], "", ports, [])))
    build.node("Identity", convert(build, name, form, version), result="file")
    graph = helper.make_graph(build.nodes, "conversion", ports[:1], ports[1:], build.initializers)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])
    made.ir_version = min(made.ir_version, 10)
    return made


def device_form(model: onnx.ModelProto, name: str, sample: np.ndarray) -> np.ndarray:
    """Return a sample of the input `name` in the file's form as the device writes it; half floats are rounded.

    Raises ModelError where the device has no number for one of the sample.
    """
    form = port_forms(model)["inputs"].get(name)
    if form is None:
        return sample
    found, dtype = np.asarray(sample), np.dtype(form["dtype"])
    if list(found.shape) != list(form["file"]["shape"]):
        raise ModelError(
            f"The sample of the input '{name}' has the shape {list(found.shape)}, the file {form['file']['shape']}.",
            "Give samples in the shape of the file's input.",
        )
    if form.get("quantised"):
        limits = np.iinfo(dtype)
        raw = np.rint(found.astype(np.float32) / np.float32(form["scale"])) + form["zero_point"]
        found = np.clip(raw, limits.min, limits.max)
    else:
        found = _raw_numbers(found.astype(np.float64), name, form)
    if form["bgr"]:
        order = [2, 1, 0, *range(3, found.shape[form["axis"]])]
        found = np.take(found, order, form["axis"])
    if form["turned"]:
        found = np.transpose(found, (0, 2, 3, 1))
    return np.ascontiguousarray(found.astype(dtype))


def _raw_numbers(given: np.ndarray, name: str, form: dict[str, Any]) -> np.ndarray:
    """Invert the conversion of an input: find the device's numbers for a sample. Raises ModelError where there is none."""
    mean, factor = (
        np.asarray(form[key] or [neutral]).reshape([-1 if each == form["axis"] else 1 for each in range(given.ndim)])
        for key, neutral in (("mean", 0.0), ("factor", 1.0))
    )
    raw, dtype = given / factor + mean, np.dtype(form["dtype"])
    if dtype.kind not in "iu":
        return raw
    limits, whole = np.iinfo(dtype), np.rint(raw)
    off = np.abs((whole - mean) * factor - given) > 1e-5 * (np.abs(given) + np.abs(factor))
    wrong = off | (whole < limits.min) | (whole > limits.max)
    if wrong.any():
        where = tuple(int(each) for each in np.argwhere(wrong)[0])
        raise ModelError(
            f"The sample of the input '{name}' holds {given[where]:g} at {list(where)}: no {dtype} of the device becomes that.",
            f"Give samples in the device's form: {dtype} {form['shape']}.",
        )
    return whole
