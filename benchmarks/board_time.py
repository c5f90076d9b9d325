"""Compare the cycles that are predicted for boards, before anything is built, with what their emulators count; write results/board_time.md.

    .venv/bin/python benchmarks/board_time.py [DIR]      default: ../shared/mlperf_tiny; without it, random networks alone

24 networks: those of MLPerf Tiny in DIR, and random ones of the fuzzer, float and quantised in turn, by TVM's default sequence.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from head import begin, publish
from mlperf_tiny import INPUTS
from models import spearman

from passfit import api
from passfit.errors import PassfitError
from passfit.passes.sequence.replay import replay
from passfit.passes.sequence.sequence import read_sequence
from passfit.targets import get_target
from passfit.tir.counts.operation_counts import program_cycles

sys.path.append(str(Path(__file__).parents[1]))
from tests.fuzz.networks import network_case

BOARDS = ("stm32f446", "stm32h743", "rp2350", "mps3-an547", "rp2040", "esp32-c3")
NETWORKS = 24
SHARED = Path(__file__).parents[2] / "shared" / "mlperf_tiny"


def networks(shared: Path, folder: Path) -> dict[str, tuple[Path, dict]]:
    """Return files with the shapes of their inputs."""
    found = {}
    for file in sorted(shared.glob("*.onnx")):
        port = onnx.load(file).graph.input[0].name
        found[file.stem] = (file, {port: [1, *INPUTS[file.stem.partition("-")[0]]]})
    for seed in range(NETWORKS - len(found)):
        kind = ("float", "qdq")[seed % 2]
        file = folder / f"{kind}-{seed}.onnx"
        onnx.save(network_case(seed, kind).model, file)
        found[file.stem] = (file, {})
    return found


def measure(file: Path, shapes: dict, board: str, out: Path) -> tuple[float, int, tuple[int, int, int]] | None:
    """Return predicted cycles, counted instructions, and estimated cycles; None where the board does not run it."""
    target = get_target(board)
    search = api.SearchSettings("tvm-default", workers=0)
    try:
        report = api.compile_model(file, target, out=out, search=search, shapes=shapes)
    except PassfitError:
        return None
    if report.measured.estimated is None or report.measured.instructions is None:
        return None
    imported = api.load(file, shapes=shapes)
    lowered, _ = replay(
        read_sequence(out / "sequence.json"), imported.graph, imported.onnx, imported.name, target.machine
    )
    predicted = program_cycles(lowered.program, lowered.kernels, target)
    return predicted, report.measured.instructions, report.measured.estimated.cycles


def table(found: dict[str, dict[str, tuple]], lines: list[str]) -> str:
    """Return board_time.md."""
    text = [
        "# Time on boards", "", *lines, "",
        "Predicted: cycles by the model in targets/cycles.py, before anything is built. Instructions: of a run, as the emulator",
        "counts them. Estimated: cycles of these by class, as targets/core_timings.py has them, in millions. Spearman's rank",
        "correlation is over the networks of a board; factor is the geometric mean of estimated ÷ predicted, and how far 5 and 95 % are from it.",
        "", "| board | networks | predicted, instructions | predicted, estimated | factor | 5 % | 95 % |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    for board, rows in found.items():
        values = np.array([(each[0], each[1], each[2][1]) for each in rows.values()])
        if len(values) < 2:
            text.append(f"| {board} | {len(values)} | | | | | |")
            continue
        factors = np.log(values[:, 2] / values[:, 0])
        low, high = np.quantile(factors - factors.mean(), (0.05, 0.95))
        ranks = [spearman(values[:, [0, other]].tolist()) for other in (1, 2)]
        text.append(
            f"| {board} | {len(values)} | {ranks[0]:.3f} | {ranks[1]:.3f} | {np.exp(factors.mean()):.2f} | {np.exp(low):.2f} | {np.exp(high):.2f} |"
        )
    text += ["", "| network | " + " | ".join(found) + " |", "| --- |" + " ---: |" * len(found)]
    names = dict.fromkeys(name for rows in found.values() for name in rows)
    for name in names:
        cells = (
            f"{rows[name][0] / 1e6:.3g}, {rows[name][2][1] / 1e6:.3g}" if name in rows else ""
            for rows in found.values()
        )
        text.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(text) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=SHARED)
    arguments = parser.parse_args()
    now, _ = begin("board_time")
    found: dict[str, dict[str, tuple]] = {board: {} for board in BOARDS}
    with tempfile.TemporaryDirectory(prefix="passfit-bench-") as scratch:
        for name, (file, shapes) in networks(arguments.folder, Path(scratch)).items():
            for board in BOARDS:
                row = measure(file, shapes, board, Path(scratch) / f"{name}-{board}")
                sys.stdout.write(f"{name} {board} {row}\n")
                sys.stdout.flush()
                if row is not None:
                    found[board][name] = row
    publish("board_time", table(found, now.lines(".venv/bin/python benchmarks/board_time.py")), whole=True)
