"""Compile the int8 models of MLPerf Tiny for every architecture; write results/mlperf_tiny.md.

    .venv/bin/python benchmarks/mlperf_tiny.py [DIR]      default: ../shared/mlperf_tiny; without it, nothing is done

Each model is compiled by `passfit compile` with all defaults; verification compares integer outputs with ONNX Runtime's.
Float models of the same network are compiled too, for the ratio of their instructions; where there is none, the
dequantised model.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterable
from math import prod
from pathlib import Path

import onnx
from head import HERE, begin
from main_tables import LIMIT, run_passfit, timed, wide
from models import Model
from timing import fastest

from passfit.frontend.canonicalise import canonicalize
from passfit.frontend.imported_model import import_onnx
from passfit.frontend.quantised.float_twin import float_twin
from passfit.frontend.source.import_options import ImportOptions

FOLDER = HERE.parents[1] / "shared" / "mlperf_tiny"
TARGETS = ("x86-64", "rpi4", "beaglebone", "visionfive2")
#: target whose instructions are compared with those of the float twin
COUNTED = "rpi4"
#: bytes of an element in files
ELEMENT = {onnx.TensorProto.FLOAT: 4, onnx.TensorProto.INT32: 4, onnx.TensorProto.INT8: 1, onnx.TensorProto.UINT8: 1}
INPUTS = {"ad": (640,), "kws": (49, 10, 1), "ic": (32, 32, 3), "vww": (96, 96, 3)}
#: bytes of ram of TFLite Micro's arena, by its Python wheel on x86-64 (`Interpreter.print_allocations`): total, head
TFLM = {"ad": (3_984, 768), "kws": (24_272, 16_000), "ic": (55_984, 49_152), "vww": (103_680, 73_728)}


def measure(file: Path) -> dict:
    """Compile a model for every target. Returns its row; one with `failed` gives the reason."""
    graph = onnx.load(file).graph
    name = file.stem.partition("-")[0]
    model = Model(file.stem, str(file), shapes={graph.input[0].name: [1, *INPUTS[name]]})
    row: dict = {"int8 weights": int8_weights(graph), "constants": layer_constants(graph)}
    with tempfile.TemporaryDirectory(prefix="passfit-bench-") as scratch:
        for target in TARGETS:
            out = Path(scratch) / target
            failed, _ = run_passfit(
                ["compile", *model.arguments(), f"--target={target}", f"--out={out}"], Path(scratch), LIMIT
            )
            if failed:
                return {"failed": f"{target}: {failed}"}
            report = json.loads((out / "footprint.json").read_text(encoding="utf-8"))
            row[target] = {part: report["best"][part] for part in ("weights", "code")}
            row[target]["ram"] = report["best"]["ram"] - report["best"]["stack"]  # as others count
            row[target] |= {name: report["measured"][name] for name in ("instructions", "ran", "given")}
            program = json.loads((out / "plan.json").read_text(encoding="utf-8"))["program"]
            row[target]["stored"] = stored(program, row[target]["weights"])
        own = Path(scratch) / "x86-64"
        row["latency"] = timed(model, {"passfit": own} | wide(model, own, Path(scratch), LIMIT))
        if file.stem.endswith("int8") and not file.with_stem(f"{name}-float").exists():
            row["twin"] = twin_instructions(model, Path(scratch))
    return row


def twin_instructions(model: Model, scratch: Path) -> int | None:
    """Count the instructions of a model's float twin on COUNTED; None if it does not compile."""
    twin, out = scratch / "twin.onnx", scratch / "twin"
    onnx.save(canonicalize(float_twin(import_onnx(model.file(), ImportOptions(model.shapes))[0])), twin)
    failed, _ = run_passfit(["compile", str(twin), f"--target={COUNTED}", f"--out={out}"], scratch, LIMIT)
    return (
        None if failed else json.loads((out / "footprint.json").read_text(encoding="utf-8"))["measured"]["instructions"]
    )


def int8_weights(graph: onnx.GraphProto) -> int:
    """Count the bytes of a graph's int8 and uint8 constants, without zero points."""
    integers = (onnx.TensorProto.INT8, onnx.TensorProto.UINT8)
    zeros = {
        node.input[2]
        for node in graph.node
        if node.op_type in ("QuantizeLinear", "DequantizeLinear") and len(node.input) > 2
    }
    return sum(prod(each.dims) for each in graph.initializer if each.data_type in integers and each.name not in zeros)


def layer_constants(graph: onnx.GraphProto) -> int:
    """Count the bytes of a file's int8 weights, their scales, and int32 biases, whose scales follow from others."""
    names = {each.name: each for each in graph.initializer}
    dequantised = [node.input for node in graph.node if node.op_type == "DequantizeLinear" and node.input[0] in names]
    used = {
        name
        for data, scale, *_ in dequantised
        for name in (data, scale)
        if name == data or names[data].data_type != onnx.TensorProto.INT32
    }
    return sum(prod(names[name].dims) * ELEMENT[names[name].data_type] for name in used)


def stored(program: dict, total: int) -> dict[str, int]:
    """Split the bytes of a plan's weights by kind; `alignment` is the rest of `total`.

    Vectors of float32 are scales, of int16 and int32 biases; packed weights hold sums for zero points and padding.
    """
    found = {"packed": 0, "scales": 0, "biases": 0}
    tensors = {each["weight"]: each for each in program["tensors"] if each.get("weight") is not None}
    for number, weight in enumerate(program["weights"]):
        tensor = tensors[number]
        vector = sum(extent > 1 for extent in tensor["shape"]) <= 1 and not tensor["dtype"].endswith("int8")
        kind = "packed" if not vector else "scales" if tensor["dtype"].startswith("float") else "biases"
        found[kind] += weight["nbytes"]
    return found | {"alignment": total - sum(found.values())}


def table(rows: dict[str, dict], head: Iterable[str]) -> str:
    """Return mlperf_tiny.md: int8 models beside TFLite Micro, and their float twins where there are any."""
    lines = [
        "# MLPerf Tiny, int8", "", *head, "",
        "Bytes. Ram: arena and workspace, by default settings: no plan is taken that is predicted to take 1.25 × the time of whole",
        "kernels (`--max-slowdown`). Every library ran and passed verification. Ratio: to all that",
        "TFLite Micro's arena holds on x86-64, and to its head, activations alone. Weights ratio: to the int8 weights of the",
        "file; biases and scales count on our side alone, channels proved constant on theirs. In brackets: to the file's",
        "biases and scales too.",
        "LSB: most units from the file as given in ONNX Runtime, and the decisions that agree.", "",
        "| model | target | ram | TFLM total (head) | ratio | weights | ratio | code | instructions | LSB (decisions) |",
        "| --- | --- |" + " ---: |" * 8,
    ]  # fmt: skip
    for name, row in rows.items():
        if "failed" in row:
            lines.append(f"| {name} | failed: {' '.join(row['failed'].split())} |" + " |" * 8)
            continue
        total, head_bytes = TFLM[name.partition("-")[0]]
        for target in TARGETS if name.endswith("int8") else ():
            found = row[target]
            count = "" if found["instructions"] is None else f"{found['instructions']:,}"
            lines.append(
                f"| {name} | {target} | {found['ram']:,} | {total:,} ({head_bytes:,}) | {found['ram'] / total:.2f} "
                f"({found['ram'] / head_bytes:.2f}) | {found['weights']:,} | {found['weights'] / row['int8 weights']:.2f} "
                f"({found['weights'] / row['constants']:.2f}) | {found['code']:,} | {count} | {_agreement(found['given'])} |"
            )
    lines += [
        "",
        "## Weights",
        "",
        "Bytes. Packed: int8 weights as kernels read them, with sums for zero points and padding; ratio to those of the file.",
        "",
    ]
    lines += ["| model | target | packed | ratio | scales | biases | alignment |", "| --- | --- |" + " ---: |" * 5]
    for name, row in rows.items():
        for target in TARGETS if name.endswith("int8") and "failed" not in row else ():
            parts = row[target]["stored"]
            ratio = parts["packed"] / row["int8 weights"]
            lines.append(
                f"| {name} | {target} | {parts['packed']:,} | {ratio:.3f} | "
                + " | ".join(f"{parts[each]:,}" for each in ("scales", "biases", "alignment"))
                + " |"
            )
    lines += [
        "",
        "## Time",
        "",
        "Milliseconds natively, one thread, turn by turn. passfit: AVX2; AVX-512: the same sequence, with VNNI where the machine",
    ]
    lines += [
        f"has it. ONNX Runtime has the machine's widest vectors. Instructions: on {COUNTED}, float ÷ int8; of the float model, or",
        "of the dequantised one where there is none.",
        "",
    ]
    lines += [
        "| model | ONNX Runtime | passfit | ratio | AVX-512 | ratio, AVX-512 | instructions |",
        "| --- |" + " ---: |" * 6,
    ]
    for name, row in rows.items():
        if "failed" in row or "failed" in row["latency"]:
            continue
        ours, theirs = min(row["latency"]["passfit"]), fastest(row["latency"])
        widest = min(row["latency"].get("wide", ()), default=None)
        wider = " | ".join(("", "") if widest is None else (f"{widest:.3f}", f"{widest / theirs:.2f}"))
        twin = row.get("twin") or rows.get(name.replace("int8", "float"), {}).get(COUNTED, {}).get("instructions")
        gain = f"{twin / row[COUNTED]['instructions']:.2f}" if name.endswith("int8") and twin else ""
        lines.append(f"| {name} | {theirs:.3f} | {ours:.3f} | {ours / theirs:.2f} | {wider} | {gain} |")
    return "\n".join(lines) + "\n"


def _agreement(given: dict | None) -> str:
    """Format the agreement of the first output with the file as given."""
    if given is None:
        return ""
    first = given["outputs"][0]
    decisions = "" if first["decisions"] is None else f" ({first['same_decisions']} of {first['decisions']})"
    return f"{first['max_lsb']}{decisions}"


def write_page(
    name: str, description: str, measured: Callable[[Path], dict], table: Callable[[dict, Iterable[str]], str]
) -> None:
    """Measure the models of the folder given on the command line, keep their rows, and write the results file `name`.md."""
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    parser.add_argument("models", nargs="?", type=Path, default=FOLDER, metavar="DIR", help="folder of the ONNX models")
    files = sorted(parser.parse_args().models.glob("*.onnx"))
    if not files:
        print(f"There are no models: results/{name}.md is left as it is.")
        return
    origin, folder = begin(name)
    rows = {}
    for path in files:
        kept = folder / f"{path.stem}.json"
        if not kept.exists():
            kept.write_text(json.dumps(measured(path), indent=1) + "\n", encoding="utf-8")
        rows[path.stem] = json.loads(kept.read_text(encoding="utf-8"))
        print(f"{path.stem}: {json.dumps(rows[path.stem])}", flush=True)
    text = table(rows, origin.lines(f".venv/bin/python benchmarks/{name}.py"))
    (HERE / "results" / f"{name}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_page("mlperf_tiny", str(__doc__), measure, table)
