"""Measure the memory that passfit itself takes to import and compile large models; write results/tool_memory.md.

    .venv/bin/python benchmarks/tool_memory.py [--mib 128] [--only layers]

Every process of a command is looked at each 30 ms: its pages, those that processes share by parts (Pss of smaps_rollup).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
from head import head, publish
from onnx import helper, numpy_helper

_SECONDS = 0.03
_IMPORT = "import sys; from pathlib import Path; from passfit.api import import_model_file; import_model_file(sys.argv[1], Path('o/m.onnx'))"
_COMPILE = ("compile", "m.onnx", "--target", "x86-64", "--strategy", "greedy", "--out", "o")


def layers(mib: int) -> onnx.ModelProto:
    """Return four dense layers of equal size."""
    width = int((mib << 16) ** 0.5)
    return _chain("MatMul", 4, (width, width), [1, width])


def convolutions(mib: int) -> onnx.ModelProto:
    """Return 64 convolutions of equal size, on planes of 8 x 8."""
    channels = round((mib * (1 << 20) / 64 / 4 / 9) ** 0.5)
    return _chain("Conv", 64, (channels, channels, 3, 3), [1, channels, 8, 8], pads=[1, 1, 1, 1])


def _chain(operator: str, count: int, shape: tuple[int, ...], data: list[int], **attributes: object) -> onnx.ModelProto:
    drawn, nodes, weights = np.random.default_rng(0), [], []
    scale = np.float32((shape[0] / np.prod(shape)) ** 0.5)
    for place in range(count):
        weights.append(numpy_helper.from_array(drawn.standard_normal(shape, np.float32) * scale, f"w{place}"))
        nodes.append(helper.make_node(operator, [f"v{place}", f"w{place}"], [f"s{place}"], **attributes))
        nodes.append(helper.make_node("Relu", [f"s{place}"], [f"v{place + 1}"]))
    first, last = (helper.make_tensor_value_info(f"v{place}", 1, data) for place in (0, count))
    graph = helper.make_graph(nodes, "chain", [first], [last], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


MODELS: dict[str, tuple[Callable[[int], onnx.ModelProto], bool]] = {
    "layers": (layers, False), "layers, side file": (layers, True), "convolutions": (convolutions, False),
}  # fmt: skip


def peak(command: list[str], folder: Path) -> int:
    """Run a command in a folder; return the most bytes that its processes have together."""
    environment = os.environ | {"PASSFIT_STORE": str(folder / "store"), "PASSFIT_CACHE": str(folder / "cache")}
    running, most = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL), 0
    while running.poll() is None:
        most = max(most, sum(map(_bytes, _tree(running.pid))))
        time.sleep(_SECONDS)
    if running.returncode:
        raise SystemExit(f"exit code {running.returncode}: {' '.join(command)}")
    return most


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:  # it ended
            continue
        for child in children:
            yield from _tree(int(child))


def _bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mib", type=int, default=128)
    parser.add_argument("--only")
    arguments = parser.parse_args()
    opening, rows = head().lines(".venv/bin/python benchmarks/tool_memory.py"), []
    for name, (build, beside) in MODELS.items():
        if arguments.only not in (None, name):
            continue
        found = []
        for command in (["-c", _IMPORT, "m.onnx"], *([] if beside else [["-m", "passfit.cli", *_COMPILE]])):
            with tempfile.TemporaryDirectory(prefix="passfit-bench-") as scratch:
                onnx.save(
                    build(arguments.mib), Path(scratch) / "m.onnx", save_as_external_data=beside, location="m.data"
                )
                found.append(peak([sys.executable, *command], Path(scratch)) >> 20)
        limits = 2 * arguments.mib + 350, 4 * arguments.mib + 1024
        cells = " | ".join(f"{each:,} | {limit:,}" for each, limit in zip(found, limits)) + " | – | –" * beside
        rows.append(f"| {name} | {arguments.mib} | {cells} |")
        print(rows[-1], flush=True)
    text = [
        "# Memory of passfit itself", "", *opening, "",
        "MiB at the peak, of all processes of a command together, shared pages by parts. Asked for: an import of twice the",
        "weights and 350 MiB, a compilation of four times the weights and 1 GiB.", "",
        "| model | weights | import | asked | compile | asked |", "| --- | ---: | ---: | ---: | ---: | ---: |", *rows, "",
    ]  # fmt: skip
    publish("tool_memory", "\n".join(text), arguments.only is None)


if __name__ == "__main__":
    main()
