"""Collect the facts of inputs and outputs for a device: scale, zero point, and the form in words.

Scale and zero point are those of the operators that read or write a port, or of its form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..canonical.ports.apply import port_forms
from ..canonical.ports.integers import MOVES, scale_at
from ..canonical.shapes import constant_tensors

if TYPE_CHECKING:
    import onnx

_TWO_OPERANDS = ("QGemm", "QLinearAdd", "QLinearMatMul", "QLinearMul")
_ONE_OPERAND = (
    "QLinearAveragePool",
    "QLinearGlobalAveragePool",
    "QLinearLeakyRelu",
    "QLinearSigmoid",
    "QLinearSoftmax",
)
#: places of scale and zero point among an operator's inputs: of a value that it reads, by the value's place
_READS = {
    **{name: {0: (1, 2)} for name in ("DequantizeLinear", "QLinearConv", *_ONE_OPERAND)},
    **{name: {0: (1, 2), 3: (4, 5)} for name in _TWO_OPERANDS},
}
#: and of its result. Source: ONNX, Operators; ONNX Runtime, ContribOperators.md
_WRITES = {
    "QuantizeLinear": (1, 2), "QLinearConv": (6, 7),
    **dict.fromkeys(_ONE_OPERAND, (3, 4)), **dict.fromkeys(_TWO_OPERANDS, (6, 7)), "QGemm": (7, 8),
}  # fmt: skip


def port_facts(model: onnx.ModelProto) -> dict[str, dict[str, Any]]:
    """Collect by port a single `scale` and `zero_point`, in words a `form` other than the file's, and the `length` the data decide."""
    facts: dict[str, dict[str, Any]] = {
        name: {"scale": scale, "zero_point": zero} for name, (scale, zero) in port_scales(model).items()
    }
    forms = port_forms(model)
    for kind, words in (("inputs", input_words), ("outputs", output_words)):
        for name, form in forms[kind].items():
            known = {key: form[key] for key in ("scale", "zero_point") if key in form and form.get("dtype") != "int32"}
            facts[name] = {**facts.get(name, {}), **known, "form": words(form)}
            if "length" in form:
                facts[name]["length"] = form["length"]
    return facts


def input_words(form: Mapping[str, Any]) -> str:
    """Describe an input for a device: the numbers it writes, and the values of the network."""
    unit = "bytes" if form["dtype"] in ("uint8", "int8") else f"{form['dtype']} numbers"
    order = "BGR " if form["bgr"] else ""
    shape = form["shape"][1:] if form["shape"][:1] == [1] and len(form["shape"]) > 1 else form["shape"]
    what = f"write {'x'.join(map(str, shape)) or 'one'} {unit}"
    if len(shape) == 3 and form.get("last"):
        what += f", rows of {order}pixels"
    elif order:
        what += ", planes of B, G and R"
    if "scale" in form:
        return f"{what}; the network gets scale * (number - zero point)"
    if not (form["mean"] or form["factor"]):
        return f"{what}; the network gets the numbers themselves"
    mean, std = (", ".join(f"{each:.7g}" for each in form[key]) for key in ("mean", "std"))
    of_channels = " of each channel in the file's order" if max(len(form["mean"]), len(form["std"])) > 1 else ""
    difference = f"(number - {mean})" if mean and "," not in mean else "(number - mean)" if mean else "number"
    quotient = "" if not std else f" / {std}" if "," not in std else " / std"
    lists = [f"{key} {text}" for key, text in (("mean", mean), ("std", std)) if "," in text]
    return f"{what}; the network gets {difference}{quotient}" + (f", {', '.join(lists)}{of_channels}" if lists else "")


def output_words(form: Mapping[str, Any]) -> str:
    """Describe an output for a device: the numbers it reads."""
    said = [f"before the last {form['logits']}"] if "logits" in form else []
    if "index" in form:
        what = (
            "the index of the largest number"
            if form["index"] == "argmax"
            else f"the indices of the {form['index']} numbers"
        )
        said.append(f"{what} along axis {form['axis']} of the file's output")
    if form.get("last"):
        said.append("channels last")
    if form.get("quantised"):
        said.append("integers of the real numbers")
    if "length" in form:
        said.append(f"valid along axis {form['length']['axis']} up to '{form['length']['output']}', 0 behind")
    return ", ".join(said) or f"as {form.get('dtype', 'in the file')}"


def port_scales(model: onnx.ModelProto) -> dict[str, tuple[float, int]]:
    """Return scale and zero point of each input and output that has a single pair."""
    constants = constant_tensors(model.graph)

    def scale(node: onnx.NodeProto, places: tuple[int, int]) -> tuple[float, int] | None:
        found = scale_at(node, constants, places)
        return None if found is None else (found.scale, found.zero_point)

    def read(name: str) -> Iterator[tuple[float, int] | None]:
        for node in model.graph.node:
            if node.op_type in MOVES and node.input[0] == name:
                yield from read(node.output[0])
            for place, places in _READS.get(node.op_type, {}).items():
                if place < len(node.input) and node.input[place] == name:
                    yield scale(node, places)

    def writers(name: str) -> Iterator[tuple[float, int] | None]:
        node = next((each for each in model.graph.node if name in each.output), None)
        if node is not None and node.op_type in MOVES:
            yield from writers(node.input[0])
        elif node is not None and node.op_type in _WRITES:
            yield scale(node, _WRITES[node.op_type])

    ports = {value.name: set(read(value.name)) for value in model.graph.input}
    ports |= {value.name: set(writers(value.name)) for value in model.graph.output}
    return {name: found for name, scales in ports.items() if len(scales) == 1 for found in scales if found is not None}
