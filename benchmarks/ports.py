"""Compile models with inputs as a device has them, and as the file has them: ram and time; write results/ports.md.

    .venv/bin/python benchmarks/ports.py                     PICTURES, and MLPerf Tiny in ../shared/mlperf_tiny
    .venv/bin/python benchmarks/ports.py --model ocr-cls     one model; its table is printed, not written

Pictures are bytes with channels last, as from a camera. Each search looks at one state of the graph. The int8 files of MLPerf Tiny
get floats as inputs and outputs first, as quantisers write them. Rows are kept by commit, machine and versions.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import onnx
from head import HERE, begin, publish
from main_tables import LIMIT, run_passfit
from models import Model, geometric_mean, models
from onnx import TensorProto, helper, numpy_helper

from passfit.frontend.quantised.port_scales import port_scales

#: models of pictures; the others of models.toml and of the zoo take minutes more
PICTURES = (
    "ocr-det-320", "ocr-cls", "ocr-rec", "mtcnn-onet", "mtcnn-rnet", "mtcnn-pnet", "mobilenet_v1", "mobilenet_v2", "squeezenet1.1",
    "vision_transformer",
)  # fmt: skip
#: what these models take: 0 to 255, less 127.5, by 128
FORM = "uint8,nhwc,mean=127.5,std=128"
TARGET = "mps2-an386"
TINY = HERE.parents[1] / "shared" / "mlperf_tiny"


def measure(arguments: list[str], options: Mapping[str, list[str]], target: str) -> dict:
    """Compile a model by each of `options`. Returns its row; one with `failed` gives the reason."""
    row: dict = {}
    for name, more in options.items():
        with tempfile.TemporaryDirectory(prefix="passfit-bench-") as scratch:
            out = Path(scratch) / "out"
            command = ["compile", *arguments, f"--target={target}", "--evaluations=1", *more, f"--out={out}"]
            failed, _ = run_passfit(command, Path(scratch), LIMIT)
            if failed:
                return {"failed": f"{name}: {failed}"}
            report = json.loads((out / "footprint.json").read_text(encoding="utf-8"))
            program = json.loads((out / "plan.json").read_text(encoding="utf-8"))["program"]
            row[name] = {key: report["best"][key] for key in ("ram", "flash")}
            row[name] |= {key: report["measured"][key] for key in ("max_rel_error", "instructions", "ran")}
            row[name]["input"] = program["buffers"][0]["nbytes"]
    return row


def with_float_ports(file: Path, folder: Path) -> Path:
    """Write an int8 model with a QuantizeLinear of its input and a DequantizeLinear of its output, as quantisers do."""
    model, (begun, ended) = onnx.load(file), ([], [])
    graph, scales = model.graph, port_scales(model)
    for value, operator, nodes in (
        (graph.input[0], "QuantizeLinear", begun),
        (graph.output[0], "DequantizeLinear", ended),
    ):
        name, port = value.name, f"float_{value.name}"
        scale, zero = scales[name]
        constants = [
            numpy_helper.from_array(np.asarray(number), f"{port}_{index}")
            for index, number in enumerate((np.float32(scale), np.int8(zero)))
        ]
        graph.initializer.extend(constants)
        source, result = (port, name) if nodes is begun else (name, port)
        nodes.append(helper.make_node(operator, [source, *(each.name for each in constants)], [result], name=port))
        value.name, value.type.tensor_type.elem_type = port, TensorProto.FLOAT
    nodes = [*begun, *graph.node, *ended]
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.save(model, folder / file.name)
    return folder / file.name


def table(rows: Mapping[str, Mapping], tiny: Mapping[str, Mapping], head: Iterable[str]) -> str:
    """Return ports.md: ram with floats and with the device's bytes."""
    columns = ["ram, floats", "ram, bytes", "ratio", "time, ratio", "largest error"]
    lines = [
        "# Inputs as the device has them", "", *head, "",
        f"Pictures as bytes with channels last (`--input NAME={FORM}`) beside floats as in the file, on {TARGET}. Bytes of ram: arena,",
        "workspace and stack. Time: instructions of a run, bytes ÷ floats.",
        "Largest error: against ONNX Runtime on the file behind the conversion, as a fraction of the output's range.", "",
        f"| model | {' | '.join(columns)} |", "| --- |" + " ---: |" * len(columns),
    ]  # fmt: skip
    lines += _rows(rows)
    lines += [
        "", "## MLPerf Tiny, int8 from float ports", "",
        f"QDQ files with float inputs and outputs, as they are and with `--io int8`, on {TARGET}. Time as above.", "",
        f"| model | {' | '.join(columns)} |", "| --- |" + " ---: |" * len(columns),
    ]  # fmt: skip
    return "\n".join([*lines, *_rows(tiny)]) + "\n"


def _rows(rows: Mapping[str, Mapping]) -> list[str]:
    lines, ratios = [], []
    for name, row in rows.items():
        if "failed" in row:
            lines.append(f"| {name} | failed: {' '.join(row['failed'].split())} |" + " |" * 4)
            continue
        before, after = row["float"], row["device"]
        ratios.append(after["ram"] / before["ram"])
        slower = (
            f"{after['instructions'] / before['instructions']:.2f}"
            if before["instructions"] and after["instructions"]
            else ""
        )
        lines.append(
            f"| {name} | {before['ram']:,} | {after['ram']:,} | {ratios[-1]:.2f} | {slower} | {_error(after)} |"
        )
    return (
        [*lines, f"| geometric mean ({len(ratios)}) | | | **{geometric_mean(ratios):.2f}** | | |"] if ratios else lines
    )


def _error(found: Mapping) -> str:
    return "not run" if found["max_rel_error"] is None else f"{found['max_rel_error']:.1e}"


def input_name(model: Model) -> str:
    """Return the name of a model's first input that is no constant."""
    graph = onnx.load(model.file(), load_external_data=False).graph
    return next(each.name for each in graph.input if each.name not in {tensor.name for tensor in graph.initializer})


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--model", action="append", help="instead of all; repeatable")
    asked = parser.parse_args().model
    origin, folder = begin("ports")
    rows, tiny = {}, {}
    with tempfile.TemporaryDirectory(prefix="passfit-bench-") as scratch:
        for name in [each.name for each in models() if each.name in (asked or PICTURES)]:
            model = next(each for each in models() if each.name == name)
            options = {"float": [], "device": [f"--input={input_name(model)}={FORM}"]}
            rows[name] = _kept(folder / f"{name}.json", model.arguments(), options, TARGET)
        for file in sorted(TINY.glob("*-float.onnx")):
            shape = onnx.load(file).graph.input[0].type.tensor_type.shape.dim
            if len(shape) == 4 and (asked is None or file.stem in asked):
                options = {"float": [], "device": [f"--input={onnx.load(file).graph.input[0].name}={FORM}"]}
                rows[file.stem] = _kept(folder / f"{file.stem}.json", [str(file)], options, TARGET)
        for file in sorted(TINY.glob("*-int8.onnx")):
            if asked is None or file.stem in asked:
                floats = with_float_ports(file, Path(scratch))
                tiny[file.stem] = _kept(
                    folder / f"{file.stem}.json", [str(floats)], {"float": [], "device": ["--io=int8"]}, TARGET
                )
    publish("ports", table(rows, tiny, origin.lines(".venv/bin/python benchmarks/ports.py")), asked is None)


def _kept(file: Path, arguments: list[str], options: Mapping[str, list[str]], target: str) -> dict:
    if not file.exists():
        file.write_text(json.dumps(measure(arguments, options, target), indent=1) + "\n", encoding="utf-8")
    row = json.loads(file.read_text(encoding="utf-8"))
    print(f"{file.stem}: {json.dumps(row)}", flush=True)
    return row


if __name__ == "__main__":
    main()
