"""Operators per kernel and milliseconds a run: TVM's default code, our kernels by TVM's rules, our kernels by mapping types.

    .venv/bin/python benchmarks/fusion.py                       the four models of Gao et al.; benchmarks/results/fusion.md
    .venv/bin/python benchmarks/fusion.py --model vgg16 --no-times

All three start from the same graph, batch norms folded. Operators are kernel calls before fusion, kernels those the
library runs: the same operators are counted for all. `ram` is arena and workspace. Times are of one thread: the programs
take turns ROUNDS times, each for SECONDS (TVM's default code once), and of each the fastest run counts. Every output is compared with ONNX Runtime's. `outside products`: share of the time by
rules that its kernels without a convolution or product of matrices take, timed in the library. A plan that leaves the
products as fast as they are gains this share at most.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from head import head
from models import HERE, geometric_mean, models

from passfit import api
from passfit.codegen.build_library import build_library
from passfit.frontend.imported_model import port_names
from passfit.kernels.lower.lower import Lowered, lower
from passfit.kernels.lower.specialise import specialise_kernels
from passfit.kernels.schedule.candidates import as_it_is
from passfit.memory.validation.checked_plan import checked_plan
from passfit.passes.graph.fusion_barriers import kernel_calls
from passfit.passes.sequence.catalogue import parse_spec
from passfit.passes.sequence.replay import replay
from passfit.passes.sequence.sequence import Sequence
from passfit.support.text_files import write_text
from passfit.targets import get_target
from passfit.tuning.profile_kernels import profile_kernels
from passfit.verify.inputs import make_input
from passfit.verify.reference import Reference
from passfit.verify.runner import link

MODELS = ("vgg16", "efficientnet_b0", "mobilenet_v1", "yolov4-tiny")
GRAPH = ("fold-batchnorm-to-conv2d", "decompose-ops-for-inference", "legalize", "fold-constant")
TVM, RULES, MAPPING = "tvm-default", "fuse-operators", "fuse-by-mapping{objective=latency}"
TARGET = get_target("x86-64")
ROUNDS, SECONDS, REPEATS = 5, 0.5, 40
#: operators that sum products
PRODUCTS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
#: largest difference from ONNX Runtime, by the spread of its output
TOLERANCE = 1e-3


@dataclass(frozen=True)
class Row:
    """Figures of a model: operators before fusion; per way kernels, bytes of ram, milliseconds (empty if not timed); largest error.

    `outside` is the share of the time by rules that kernels without a product take.
    """

    model: str
    operators: int
    kernels: dict[str, int]
    ram: dict[str, int]
    ms: dict[str, float]
    error: float
    outside: float = math.nan

    def ratio(self, way: str) -> float:
        return self.operators / self.kernels[way]


def programs(imported: api.ImportedModel) -> dict[str, tuple[Lowered, int]]:
    """Lower the model all three ways; return each with its workspace."""
    ours = {
        fuse: replay(_sequence(fuse), imported.graph, imported.onnx, "m", TARGET.machine) for fuse in (RULES, MAPPING)
    }
    return {TVM: _tvm_default(imported), **ours}


def _sequence(fuse: str) -> Sequence:
    return Sequence(tuple(map(parse_spec, (*GRAPH, fuse, "share"))))


def _tvm_default(imported: api.ImportedModel) -> tuple[Lowered, int]:
    """Lower by TVM's rules, and leave its kernels as TVM makes them: LLVM alone schedules them."""
    from passfit.kernels.lower.schedule_program import schedule_program

    module = imported.graph
    for spec in (*GRAPH, RULES):
        module = parse_spec(spec).apply(module)
    made = lower(module, "m", *port_names(imported.onnx), machine=TARGET.machine)
    plain = {name: as_it_is(kernel) for name, kernel in made.kernels.items()}
    scheduled, workspace = schedule_program(replace(made, kernels=plain))
    return specialise_kernels(scheduled), workspace


def measure(model: str, *, times: bool) -> Row:
    path = next((each.file() for each in models() if each.name == model), model)
    imported = api.load(str(path), "m", None, None)
    graph = imported.graph
    for spec in GRAPH:
        graph = parse_spec(spec).apply(graph)
    operators = sum(1 for _ in kernel_calls(graph["main"]))
    made = programs(imported)
    kernels = {way: len(lowered.program.steps) for way, (lowered, _) in made.items()}
    inputs = make_input(imported.onnx, 0, 0)
    expected = Reference(imported.onnx)(inputs)
    ms: dict[str, float] = {}
    errors = []
    ram: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="passfit-") as scratch:
        linked = {}
        for number, (way, (lowered, workspace)) in enumerate(made.items()):
            folder = Path(scratch) / str(number)
            folder.mkdir()
            plan = checked_plan(lowered.program, TARGET)
            ram[way] = plan.arena + workspace
            linked[way] = link(
                build_library("m", lowered, plan, workspace, TARGET, folder), lowered.program, TARGET, folder
            )
            _, (outputs,) = linked[way].run([inputs], 1, 0.0)
            found = zip(
                outputs.values() if isinstance(outputs, dict) else outputs,
                expected.values() if isinstance(expected, dict) else expected,
            )
            errors += [float(np.abs(ours - theirs).max() / (np.ptp(theirs) or 1.0)) for ours, theirs in found]
        for number in range(ROUNDS if times else 0):
            for way, program in linked.items():
                if number and way == TVM:
                    continue  # half a minute a run
                report, _ = program.run([inputs], REPEATS, SECONDS)
                ms[way] = min(ms.get(way, math.inf), report["min_ns"] / 1e6)
    if max(errors) > TOLERANCE:
        raise SystemExit(f"{model}: an output is {max(errors):.1e} of its spread from ONNX Runtime's.")
    return Row(model, operators, kernels, ram, ms, max(errors), _outside_products(imported) if times else math.nan)


def _outside_products(imported: api.ImportedModel) -> float:
    """Time the kernels by rules in their library; return the share of those without a product."""
    products = {node.name for node in imported.onnx.graph.node if node.op_type in PRODUCTS}
    rows = profile_kernels(imported, _sequence(RULES), TARGET, lambda *_: None)["kernels"]
    return sum(row["ns"] for row in rows if products.isdisjoint(row["nodes"])) / sum(row["ns"] for row in rows)


def table(rows: list[Row], origin: Iterable[str]) -> str:
    """Format the rows as Markdown, geometric means last."""
    lines = [
        "# Fusion by mapping types, beside TVM's rules",
        "",
        *origin,
        "",
        "Operators per kernel; milliseconds a run of one thread; in brackets how many times faster than the column to its left.",
        "",
        "| model | operators | kernels by rules | by mapping | operators per kernel, ÷ rules | ram by rules | by mapping | tvm-default | by rules | by mapping | ÷ tvm-default | outside products | error |",
        "| --- |" + " ---: |" * 12,
    ]
    for row in rows:
        lines.append(
            f"| {row.model} | {row.operators} | {row.kernels[RULES]} | {row.kernels[MAPPING]} "
            f"| {row.ratio(MAPPING):.2f} ({_share(row):.2f}×) "
            f"| {_kib(row.ram[RULES])} | {_kib(row.ram[MAPPING])} | {_times(row)} | {_percent(row.outside)} | {row.error:.0e} |"
        )
    shares = [_share(row) for row in rows]
    timed = [row for row in rows if row.ms]
    gains = (
        [
            _mean([row.ms[one] / row.ms[other] for row in timed])
            for one, other in ((TVM, RULES), (RULES, MAPPING), (TVM, MAPPING))
        ]
        if timed
        else None
    )
    cells = f"| | {gains[0]} | {gains[1]} | {gains[2]}" if gains else "| | | | "
    lines.append(
        f"| **geometric mean** | | | | {_mean(shares)} | | {_mean([row.ram[MAPPING] / row.ram[RULES] for row in rows])} {cells} | {_mean_share(timed)} | |"
    )
    return "\n".join(lines) + "\n"


def _kib(size: int) -> str:
    return f"{size / 1024:.0f} KiB"


def _share(row: Row) -> float:
    return row.ratio(MAPPING) / row.ratio(RULES)


def _times(row: Row) -> str:
    if not row.ms:
        return " | | | "
    tvm, rules, mapping = (row.ms[way] for way in (TVM, RULES, MAPPING))
    return (
        f"{tvm:.2f} | {rules:.2f} ({tvm / rules:.2f}×) | {mapping:.2f} ({rules / mapping:.2f}×) | {tvm / mapping:.2f}×"
    )


def _mean_share(timed: list[Row]) -> str:
    return _percent(1 - geometric_mean([1 - row.outside for row in timed])) if timed else ""


def _percent(share: float) -> str:
    return "" if math.isnan(share) else f"{share:.1%}"


def _mean(ratios: list[float]) -> str:
    return f"{geometric_mean(ratios):.2f}×"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", action="append", help="of the zoo, or a file; all four if none")
    parser.add_argument("--no-times", action="store_true", help="count kernels and check numerics only")
    arguments = parser.parse_args()
    rows, origin = [], head()
    for model in arguments.model or MODELS:
        rows.append(measure(model, times=not arguments.no_times))
        sys.stderr.write(f"{rows[-1]}\n")
    text = table(rows, origin.lines(".venv/bin/python benchmarks/fusion.py"))
    sys.stdout.write(text)
    if not arguments.model and not arguments.no_times:
        write_text(HERE / "results" / "fusion.md", text)


if __name__ == "__main__":
    main()
