"""Give a model the inputs and outputs of the device: all later steps, and the reference, see a file that has them.

The forms travel in the metadata of the model, as the origin's figures do: see `input_ports` for those of inputs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import ModelError, did_you_mean
from ....params.ports import InputPort
from ...source.import_options import ImportOptions
from ..bind_shapes import bind_inputs
from ..clean_names import free_inputs
from ..node_builder import Names, NodeBuilder
from ..read_onnx import add_metadata, metadata_of, operator_set
from .inputs import convert, convert_input
from .integers import integer_input, integer_output
from .outputs import convert_output, widen_output
from .values import NARROW, dtype_name

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
    forms = _widen_narrow(model)
    if not (inputs or outputs or options.integer_ports or any(forms.values())):
        return []
    known = [value.name for value in model.graph.input]
    for name in inputs:
        if name not in known:
            raise ModelError(f"The model has no input '{name}'; it has {', '.join(known)}.", did_you_mean(name, known))
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


def _widen_narrow(model: onnx.ModelProto) -> dict[str, Forms]:
    """Give inputs and outputs of few bits the dtype that holds their numbers, in place; return their forms: C has no other."""
    forms: dict[str, Forms] = {"inputs": {}, "outputs": {}}
    for value in free_inputs(model):
        if value.type.HasField("tensor_type") and (wide := NARROW.get(dtype_name(value))):
            forms["inputs"][value.name] = convert_input(model, value.name, InputPort.model_validate({"dtype": wide}))
    for value in model.graph.output:
        if value.type.HasField("tensor_type") and (wide := NARROW.get(dtype_name(value))):
            forms["outputs"][value.name] = widen_output(model, value.name, wide)
    return forms


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


def length_forms(forms: dict[str, Forms]) -> dict[str, dict[str, Any]]:
    """Return the lengths of outputs that the data decide, by output: each with its own `output`, and its `axis`."""
    return {name: form["length"] for name, form in forms["outputs"].items() if "length" in form}


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
