"""Switch off what lowering, schedule rules and code generation do, one by one: time, code, ram; write results/ablation.md.

    .venv/bin/python benchmarks/ablation.py                                     MODELS, some minutes each
    .venv/bin/python benchmarks/ablation.py --model ocr-cls --only split_taps   printed, not written; both repeatable

All libraries of a model replay the sequence that the default search finds, are compared with ONNX Runtime as always, and take
turns in one process. Rows are kept by commit, machine and versions.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import wraps
from pathlib import Path
from typing import Any

import form_tables
import tvm_ffi
from head import begin, publish
from main_tables import LIMIT, run_passfit
from models import Model, geometric_mean, models
from timing import library_run, turn_by_turn

import passfit.codegen.llvm_pipelines
from passfit import api
from passfit.errors import reason_of
from passfit.frontend.imported_model import ImportedModel, load
from passfit.kernels.rules.rule import Rule, RuleResult
from passfit.kernels.schedule import candidates
from passfit.kernels.schedule.candidates import RULES
from passfit.passes.sequence.replay import replay
from passfit.passes.sequence.sequence import read_sequence
from passfit.support.result_store import shared_store
from passfit.targets import get_target
from passfit.tir.switches import CHANGED, SWITCHES, switched_off

TARGET = "x86-64"
#: models of many kinds of kernels
MODELS = (
    "mtcnn-onet", "mtcnn-rnet", "ocr-cls", "wake-melspectrogram", "vad", "speech-dnsmos-p808", "squeezenet1.1", "crnn",
    "style_transfer", "causal_conv", "circular_conv", "reflected_conv", "shuffled_squeeze", "deformable_tail", "conv_lstm",
    "additive_attention", "whisper_encoder", "t5_encoder", "int8-crnn_nodes", "int8-encoder_decoder_2d",
)  # fmt: skip
#: a transformation that changes less, in the mean and everywhere, is not worth its lines
MEAN, ANYWHERE = 0.01, 0.10
_CODEGEN = {name for name, each in SWITCHES.items() if each.__module__.startswith(passfit.codegen.__name__)}


def switches() -> list[str]:
    """Return the names of all transformations and rules with a switch."""
    return [*SWITCHES, *(rule.__name__ for rule in RULES)]


def measure(model: Model, names: Sequence[str]) -> dict:
    """Compile a model with each of `names` switched off. Returns its row; one with `failed` gives the reason."""
    with tempfile.TemporaryDirectory(prefix="passfit-bench-") as name:
        scratch = Path(name)
        found = scratch / "found"
        failed, _ = run_passfit(["compile", *model.arguments(), f"--target={TARGET}", f"--out={found}"], scratch, LIMIT)
        if failed:
            return {"failed": failed}
        imported = load(model.file(), model.name, shapes=model.shapes, fix=model.fix)
        sequence, row = found / "sequence.json", {}
        row[""] = whole = _in_a_fork(imported, sequence, "", scratch, "")
        for each in names:
            used = each in whole["used"] or each in _CODEGEN  # kernels are compiled in processes of their own
            row[each] = _in_a_fork(imported, sequence, each, scratch, whole["kernels"]) if used else {"same": True}
        folders = {each: scratch / (each or "all") for each, built in row.items() if "code" in built}
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            for each, turns in process.submit(_timed, folders).result().items():
                row[each]["ms"] = min(turns)
    return row


def _in_a_fork(imported: ImportedModel, sequence: Path, switch: str, scratch: Path, kernels: str) -> dict:
    """Build in a process of its own: results kept in memory do not know of switches."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as process:
        return process.submit(_build, imported, sequence, switch, scratch, kernels).result()


def _build(imported: ImportedModel, sequence: Path, switch: str, scratch: Path, kernels: str) -> dict:
    """Compile with `switch` off into `scratch`; return code, ram and a digest, or that nothing changes."""
    os.environ["PASSFIT_STORE"] = "off" if switch in _CODEGEN else str(scratch / "store")
    shared_store.cache_clear()
    target, passes = get_target(TARGET), read_sequence(sequence)
    if not switch:
        candidates.RULES = tuple(map(_recorded, RULES))
    with switched_off(*filter(None, [switch])):
        try:
            lowered, _ = replay(passes, imported.graph, imported.onnx, imported.name, target.machine)
            digest = " ".join(f"{name}:{tvm_ffi.structural_hash(each)}" for name, each in lowered.kernels.items())
            if digest == kernels and switch not in _CODEGEN:
                return {"same": True}
            report = api.compile_imported(imported, target, out=scratch / (switch or "all"), sequence=passes)
        except Exception as error:  # a refusal, or code that only the transformation left out can compile
            return {"failed": reason_of(error)}
    archive = (scratch / (switch or "all") / f"lib{imported.name}.a").read_bytes()
    if switch and archive == (scratch / "all" / f"lib{imported.name}.a").read_bytes():
        return {"same": True}
    ram = report.best.arena + report.best.workspace
    return {"kernels": digest, "code": report.best.code, "ram": ram, "used": sorted(CHANGED)}


def _recorded(rule: Rule) -> Rule:
    """Return a rule that is among the transformations that change anything once it finds a schedule."""

    @wraps(rule)
    def recorded(*given: Any) -> Iterator[RuleResult]:
        for result in rule(*given):
            CHANGED.add(rule.__name__)
            yield result

    return recorded


def _timed(folders: Mapping[str, Path]) -> dict[str, list[float]]:
    runs = {name: library_run(folder) for name, folder in folders.items()}
    return turn_by_turn(runs, choose=min, clock=time.thread_time_ns)


def table(rows: Mapping[str, Mapping], head: Iterable[str]) -> str:
    """Return ablation.md: what is lost without each transformation, the most first."""
    lines = [
        "# Ablation", "", *head, "",
        f"Libraries for {TARGET} with one transformation switched off ÷ with all: milliseconds of the shortest run, turn by turn;",
        "bytes of code; arena and workspace. Means are geometric, over all models; those a transformation leaves alone count as 1.",
        f"Below {MEAN:.0%} in the mean and {ANYWHERE:.0%} anywhere, one is not worth its lines, on this target.", "",
        "| without | changes | time | worst | best | code | ram | fails |", "| --- | ---: | ---: | --- | --- | ---: | ---: | --- |",
    ]  # fmt: skip
    good = {name: row for name, row in rows.items() if "failed" not in row}
    found = []
    for switch in dict.fromkeys(each for row in good.values() for each in row if each):
        ratios = {name: _ratios(row[switch], row[""]) for name, row in good.items() if switch in row}
        failed = [name for name, row in good.items() if "failed" in row.get(switch, {})]
        means = [geometric_mean([each[part] for each in ratios.values()]) for part in range(3)]
        changed = sorted((each[0], name) for name, each in ratios.items() if each != (1.0, 1.0, 1.0))
        ends = [f"{ratio:.3f} {name}" for ratio, name in (changed[-1:] + changed[:1])] or ["", ""]
        cells = [
            switch,
            str(len(changed)),
            f"{means[0]:.3f}",
            *ends,
            f"{means[1]:.3f}",
            f"{means[2]:.3f}",
            " ".join(failed),
        ]
        found.append((means[0], f"| {' | '.join(cells)} |"))
    lines += [line for _, line in sorted(found, reverse=True)]
    lines += [f"\n{name}: failed: {row['failed']}" for name, row in rows.items() if "failed" in row]
    return "\n".join(lines) + "\n"


def _ratios(without: Mapping, whole: Mapping) -> tuple[float, float, float]:
    """Return time, code and ram of a library relative to the whole one."""
    if "code" not in without:
        return 1.0, 1.0, 1.0
    return tuple(without[part] / max(1e-9, whole[part]) if whole[part] else 1.0 for part in ("ms", "code", "ram"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", action="append", help="instead of MODELS; repeatable")
    parser.add_argument("--only", action="append", help="transformation to switch off; repeatable", choices=switches())
    arguments = parser.parse_args()
    origin, folder = begin("ablation")
    rows = {}
    for model in [*models(), *form_tables.models()]:
        if model.name not in (arguments.model or MODELS):
            continue
        file = folder / f"{'-'.join([model.name, *(arguments.only or [])])}.json"
        if not file.exists():
            file.write_text(json.dumps(measure(model, arguments.only or switches()), indent=1) + "\n", encoding="utf-8")
        rows[model.title] = json.loads(file.read_text(encoding="utf-8"))
        print(f"{model.name}: done", flush=True)
    whole = not (arguments.model or arguments.only)
    publish("ablation", table(rows, origin.lines(".venv/bin/python benchmarks/ablation.py")), whole)


if __name__ == "__main__":
    main()
