"""Count the instructions of int8 layers and models beside float ones; write results/int8_kernels.md.

    .venv/bin/python benchmarks/int8_kernels.py [--target rpi4] [DIR]     default: ../shared/mlperf_tiny

Layers are compiled for one sequence. Models are compiled by default settings; DIR may be missing. Float twins are of the
same shapes: a model's own where there is one, else its file with all weights dequantised and no Q/DQ nodes.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
import onnx
from head import HERE, begin
from mlperf_tiny import FOLDER, INPUTS
from onnx import TensorProto, helper, numpy_helper

from passfit import api
from passfit.passes.sequence.sequence import TVM_DEFAULT
from passfit.targets import get_target

SEQUENCE = (*TVM_DEFAULT, "share", "order")
#: shapes of x and of w, stride, padding, groups; two-dimensional: matrix products
LAYERS = {
    "3x3, 16 to 16, 32x32": ((1, 16, 32, 32), (16, 16, 3, 3), 1, 1, 1),
    "3x3, 64 to 64, 8x8": ((1, 64, 8, 8), (64, 64, 3, 3), 1, 1, 1),
    "3x3 / 2, 32 to 64, 16x16": ((1, 32, 16, 16), (64, 32, 3, 3), 2, 1, 1),
    "3x3, 3 to 16, 32x32": ((1, 3, 32, 32), (16, 3, 3, 3), 1, 1, 1),
    "10x4 / 2, 1 to 64, 49x10": ((1, 1, 49, 10), (64, 1, 10, 4), 2, 1, 1),
    "1x1, 8 to 16, 48x48": ((1, 8, 48, 48), (16, 8, 1, 1), 1, 0, 1),
    "1x1, 64 to 64, 25x5": ((1, 64, 25, 5), (64, 64, 1, 1), 1, 0, 1),
    "1x1, 128 to 128, 6x6": ((1, 128, 6, 6), (128, 128, 1, 1), 1, 0, 1),
    "1x1, 256 to 256, 3x3": ((1, 256, 3, 3), (256, 256, 1, 1), 1, 0, 1),
    "depthwise 3x3, 64, 25x5": ((1, 64, 25, 5), (64, 1, 3, 3), 1, 1, 64),
    "depthwise 3x3, 32, 24x24": ((1, 32, 24, 24), (32, 1, 3, 3), 1, 1, 32),
    "depthwise 3x3 / 2, 64, 24x24": ((1, 64, 24, 24), (64, 1, 3, 3), 2, 1, 64),
    "dense, 640 to 128": ((1, 640), (640, 128), 1, 0, 1),
    "dense, 128 to 128": ((1, 128), (128, 128), 1, 0, 1),
    "product, 64 x 64 x 64": ((64, 64), (64, 64), 1, 0, 1),
}


def layer(name: str, integer: bool) -> onnx.ModelProto:
    """Make a layer of seeded numbers: integer to bytes, else float with a Relu after it."""
    x, w, stride, pad, groups = LAYERS[name]
    random = np.random.default_rng(0)
    convolves, filters = len(x) == 4, w[0] if len(x) == 4 else w[1]
    attributes = {"strides": [stride] * 2, "pads": [pad] * 4, "group": groups} if convolves else {}
    if integer:
        held = {
            "xs": np.float32(0.02), "xz": np.int8(-3), "w": random.integers(-127, 128, w).astype(np.int8),
            "ws": (random.uniform(0.5, 1.5, filters) * 0.003).astype(np.float32), "wz": np.zeros(filters, np.int8),
            "ys": np.float32(0.05), "yz": np.int8(-5),
        }  # fmt: skip
        if convolves:
            held["b"] = random.integers(-999, 999, filters).astype(np.int32)
        nodes = [helper.make_node("QLinearConv" if convolves else "QLinearMatMul", ["x", *held], ["y"], **attributes)]
    else:
        held = {"w": (random.standard_normal(w) * 0.1).astype(np.float32)}
        if convolves:
            held["b"] = random.standard_normal(filters).astype(np.float32)
        nodes = [
            helper.make_node("Conv" if convolves else "MatMul", ["x", *held], ["z"], **attributes),
            helper.make_node("Relu", ["z"], ["y"]),
        ]
    return _model(
        nodes,
        {name: np.asarray(value) for name, value in held.items()},
        x,
        TensorProto.INT8 if integer else TensorProto.FLOAT,
    )


def _model(
    nodes: list[onnx.NodeProto], held: dict[str, np.ndarray], shape: tuple[int, ...], kind: int
) -> onnx.ModelProto:
    ports = [helper.make_tensor_value_info("x", kind, shape)], [helper.make_tensor_value_info("y", kind, None)]
    graph = helper.make_graph(
        nodes, "layer", *ports, [numpy_helper.from_array(value, name) for name, value in held.items()]
    )
    return onnx.shape_inference.infer_shapes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    )


def float_twin(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the float model of a QDQ model: constants dequantised, Q and DQ nodes left out."""
    graph = model.graph
    held = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    same: dict[str, str] = {}
    nodes = []
    for node in graph.node:
        inputs = [same.get(name, name) for name in node.input]
        if node.op_type == "QuantizeLinear" or (node.op_type == "DequantizeLinear" and inputs[0] not in held):
            same[node.output[0]] = inputs[0]
        elif node.op_type == "DequantizeLinear":
            value, scale = held[inputs[0]].astype(np.float32), held[inputs[1]]
            zero = held[inputs[2]].astype(np.float32) if len(inputs) > 2 else np.float32(0)
            axis = next((each.i for each in node.attribute if each.name == "axis"), 1)
            shape = (
                [-1 if place == axis % value.ndim else 1 for place in range(value.ndim)] if np.size(scale) > 1 else []
            )
            held[node.output[0]] = (value - (zero.reshape(shape) if np.size(zero) > 1 else zero)) * scale.reshape(
                shape or ()
            )
        else:
            nodes.append(
                helper.make_node(
                    node.op_type,
                    inputs,
                    list(node.output),
                    **{each.name: helper.get_attribute_value(each) for each in node.attribute},
                )
            )
    used = {name for node in nodes for name in node.input}
    ports = [
        helper.make_tensor_value_info(same.get(each.name, each.name), TensorProto.FLOAT, None) for each in graph.output
    ]
    given = [
        helper.make_tensor_value_info(
            each.name, TensorProto.FLOAT, [d.dim_value or d.dim_param for d in each.type.tensor_type.shape.dim]
        )
        for each in graph.input
    ]
    kept = [numpy_helper.from_array(np.asarray(value), name) for name, value in held.items() if name in used]
    return helper.make_model(
        helper.make_graph(nodes, "twin", given, ports, kept),
        opset_imports=model.opset_import,
        ir_version=model.ir_version,
    )


def instructions(model: onnx.ModelProto, target: str, *, search: bool) -> dict[str, int]:
    """Compile a model and count the instructions of a run; verification compares its outputs with ONNX Runtime's."""
    with tempfile.TemporaryDirectory(prefix="passfit-bench-") as scratch:
        folder = Path(scratch)
        onnx.save(model, folder / "model.onnx")
        (folder / "sequence.json").write_text(json.dumps({"passes": SEQUENCE}) + "\n", encoding="utf-8")
        name = model.graph.input[0].name
        shape = INPUTS.get(model.doc_string)
        api.compile_model(
            str(folder / "model.onnx"), get_target(target), out=folder / "out", name="model",
            sequence=None if search else folder / "sequence.json", shapes={name: [1, *shape]} if shape else {},
        )  # fmt: skip
        found = json.loads((folder / "out" / "footprint.json").read_text(encoding="utf-8"))
        return {
            "instructions": found["measured"]["instructions"],
            "ram": found["best"]["ram"],
            "weights": found["best"]["weights"],
        }


def products(name: str) -> int:
    """Count the multiplications of a layer."""
    x, w, stride, pad, _ = LAYERS[name]
    if len(x) == 2:
        return x[0] * w[0] * w[1]
    return int(np.prod(w)) * int(
        np.prod([(size + 2 * pad - taps) // stride + 1 for size, taps in zip(x[2:], w[2:], strict=True)])
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "models", nargs="?", type=Path, default=FOLDER, metavar="DIR", help="folder of int8 ONNX models"
    )
    parser.add_argument("--target", default="rpi4", help="a target whose instructions are counted under its emulator")
    options = parser.parse_args()
    origin, folder = begin("int8_kernels")

    def row(name: str, integer: onnx.ModelProto, other: onnx.ModelProto, search: bool) -> dict:
        kept = folder / f"{options.target} {name}.json".replace("/", "by")
        if not kept.exists():
            found = {
                kind: instructions(model, options.target, search=search)
                for kind, model in (("int8", integer), ("float", other))
            }
            kept.write_text(json.dumps(found) + "\n", encoding="utf-8")
        return json.loads(kept.read_text(encoding="utf-8"))

    lines = [
        "# int8 kernels", "", *origin.lines(f".venv/bin/python benchmarks/int8_kernels.py --target {options.target}"), "",
        f"Instructions executed on {options.target}, one run. Float twins have the same shapes. Outputs were verified: those of",
        "int8 are exact.", "", "| layer | products | int8 | products each | float | float ÷ int8 |", "| --- |" + " ---: |" * 5,
    ]  # fmt: skip
    for name in LAYERS:
        found = row(name, layer(name, True), layer(name, False), False)
        one, other = found["int8"]["instructions"], found["float"]["instructions"]
        lines.append(
            f"| {name} | {products(name):,} | {one:,} | {products(name) / one:.2f} | {other:,} | {other / one:.2f} |"
        )
        print(lines[-1], flush=True)
    lines += ["", "| model | int8 | float | float ÷ int8 | ram, int8 | ram, float |", "| --- |" + " ---: |" * 5]
    for path in sorted(options.models.glob("*-int8.onnx")):
        name, model = path.stem.partition("-")[0], onnx.load(path)
        own = path.with_name(f"{name}-float.onnx")
        twin = onnx.load(own) if own.exists() else float_twin(model)
        for each in (model, twin):
            each.doc_string = name
        found = row(path.stem, model, twin, True)
        one, other = found["int8"], found["float"]
        ratio = other["instructions"] / one["instructions"]
        lines.append(
            f"| {path.stem} | {one['instructions']:,} | {other['instructions']:,} | {ratio:.2f} | {one['ram']:,} | {other['ram']:,} |"
        )
        print(lines[-1], flush=True)
    (HERE / "results" / "int8_kernels.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
