"""What each lever gives: ram ÷ tvm-default, for x86-64, on every model of models.toml and of the zoo.

    .venv/bin/python benchmarks/memory.py                        all of it; results in benchmarks/results/memory/
    .venv/bin/python benchmarks/memory.py --model ocr-cls --column order --again

Results are kept per model and column, each as soon as it is known: an interrupted run goes on where it stopped, and of
a column that is new only that column is worked out. Each model has a process of its own, so its memory is given back.
Ram is predicted; in the last column the library is also compiled, executed, compared and measured.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path

from entries import HERE, Entry, alone, attempted, entries
from memory_table import BASELINE, RESULTS, cell, file_of, known_of, ratio, table

from passfit import api
from passfit.errors import PassfitError
from passfit.frontend.imported_model import port_names
from passfit.kernels.rewrite.splittable import splits_of
from passfit.memory import Footprint, best_order, plan_arena
from passfit.memory.placement.account import footprint_of
from passfit.memory.streaming.partition import apply_partition, best_partition
from passfit.passes.base import ModulePass
from passfit.passes.sequence.apply import apply_program_passes
from passfit.passes.sequence.catalogue import parse_spec
from passfit.passes.sequence.sequence import TVM_DEFAULT
from passfit.program import Program
from passfit.search.evaluate.forked import forked
from passfit.search.evaluate.scoring import EvaluationRequest, Scorer
from passfit.search.evaluate.tvm_default import tvm_default
from passfit.search.knowledge import load_knowledge
from passfit.search.search import search
from passfit.support.text_files import write_text
from passfit.targets import get_target

TARGET = get_target("x86-64")
#: so that 44 models take an hour; splits gain most of what there is to gain
SHORT = api.SearchSettings(evaluations=12, workers=1)


class Setting:
    """What all columns of one model start from: one import, one lowering, one baseline."""

    def __init__(self, imported: api.ImportedModel):
        self.imported = imported
        self.ports = port_names(imported.onnx)
        self.scorer = Scorer(imported.graph, imported.name, TARGET, *self.ports)

    @cached_property
    def plain(self) -> Footprint:
        """The footprint of the kernels of tvm-default, freed of their workspaces, in the order given."""
        outcome = self.scorer.outcome(EvaluationRequest(TVM_DEFAULT, order=(parse_spec("order{by=given}"),)))
        if outcome.footprint is None:
            raise RuntimeError(outcome.failure)
        return outcome.footprint

    @cached_property
    def program(self) -> Program:
        return self.scorer.program(TVM_DEFAULT)


def baseline(setting: Setting) -> dict:
    started = time.monotonic()
    found = tvm_default(setting.imported.graph, TARGET, *setting.ports)
    return {"ram": found.ram, "seconds": _since(started)}


def plain(setting: Setting) -> dict:
    started = time.monotonic()
    found = setting.plain
    return _row(setting, found, TVM_DEFAULT, _since(started))


def lever(*arrangement: str) -> Callable[[Setting], dict]:
    """A column: the plain kernels after these passes on the program; its seconds are theirs and the plan's."""

    def column(setting: Setting) -> dict:
        workspace, program = setting.plain.workspace, setting.program
        started = time.monotonic()
        for spec in arrangement:
            program = parse_spec(spec).rearrange(program)
        plan = plan_arena(program, TARGET.alignment)
        seconds = _since(started)
        found = footprint_of(program, plan, workspace, 0, TARGET)
        return _row(setting, found, (*TVM_DEFAULT, *arrangement), seconds)

    return column


def searched(setting: Setting) -> dict:
    """What `passfit optimize` finds by default, except that it works on one core."""
    started = time.monotonic()
    # the baseline, which is a column by itself, is not worked out again: it is only handed on
    result = search(
        setting.imported.graph, setting.imported.name, TARGET, *setting.ports, knowledge=load_knowledge(),
        workers=forked(1), baseline=setting.plain, extra_compute=None,
    )  # fmt: skip
    row = _row(setting, result.best, result.sequence.specs, _since(started))
    return row | {"evaluations": result.evaluations, "closed": result.closed}


def split(setting: Setting) -> dict:
    """The plain kernels in their order, in parts where that lowers the peak; nothing is shared, nothing run twice."""
    program, splits = setting.program, splits_of(setting.scorer.lowered(TVM_DEFAULT))
    started = time.monotonic()
    regions = best_partition(program, splits, TARGET.alignment).regions
    program = apply_partition(program, splits, regions, TARGET.alignment)
    plan = plan_arena(program, TARGET.alignment)
    seconds = _since(started)
    found = footprint_of(program, plan, setting.plain.workspace, 0, TARGET)
    return _row(setting, found, TVM_DEFAULT, seconds)


def everything(setting: Setting) -> dict:
    """What `passfit compile` makes after a short search: built for this machine, run, compared, measured."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        report = api.compile_imported(setting.imported, TARGET, out=out, search=SHORT)
        specs = json.loads((out / "sequence.json").read_text(encoding="utf-8"))["passes"]
        extra = json.loads((out / "search.json").read_text(encoding="utf-8"))["extra_compute"]
    measured = report.measured
    row = _row(setting, report.best, tuple(specs), _since(started))
    return row | {
        "extra_compute": round(extra, 4), "kernels": report.best.kernels, "measured": measured.ram,
        "error": measured.max_rel_error, "ms": measured.latency_ms,
    }  # fmt: skip


#: the columns of the table, in order, each worked out in the same way for every model
COLUMNS: dict[str, Callable[[Setting], dict]] = {
    BASELINE: baseline,
    "plain": plain,
    "order": lever("order"),
    "in-place": lever("share{copies=0}"),
    "concat-inside": lever("share{in_place=0}"),
    "order + both": lever("share", "order"),
    "split": split,
    "search": searched,
    "everything": everything,
}


def _row(setting: Setting, found: Footprint, specs: tuple[str, ...], seconds: float) -> dict:
    """A result. `reached`: the arena is equal to the bound; `proved`: and no order of these kernels, sharing the same
    memory, has a lower one."""
    passes = tuple(map(parse_spec, specs))
    kernels = tuple(each.spec for each in passes if isinstance(each, ModulePass))
    others = [each for each in passes if not isinstance(each, ModulePass)]
    proved = found.proved and found.arena == found.floor
    if found.proved and not proved:
        lowered, _ = apply_program_passes(setting.scorer.lowered(kernels), others)
        schedule = best_order(lowered.program, alignment=TARGET.alignment)
        proved = schedule.optimal and schedule.peak == found.arena
    sizes = {"ram": found.ram, "arena": found.arena, "bound": found.bound, "workspace": found.workspace}
    return sizes | {"reached": found.proved, "proved": proved, "passes": list(specs), "seconds": seconds}


def _since(started: float) -> float:
    return round(time.monotonic() - started, 2)


def fill(entry: Entry, columns: list[str]) -> None:
    """Work out the columns of one model, and write its file after each. What goes wrong is its result."""
    known = {column: found for column, found in known_of(entry).items() if column not in columns}
    try:
        source = entry.fetched()
        started = time.monotonic()
        setting = Setting(entry.load(source))
        known[""] = {"seconds": _since(started)}
    except PassfitError as error:
        known |= {column: {"failed": str(error)} for column in columns}
        columns = []
    for column in columns:
        known[column] = attempted(partial(COLUMNS[column], setting))
        _write(entry, known)
    _write(entry, known)


def _write(entry: Entry, known: dict) -> None:
    ordered = {column: known[column] for column in ("", *COLUMNS) if column in known}
    write_text(file_of(entry), json.dumps(ordered, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", action="append", help="only this one; repeatable")
    parser.add_argument("--column", action="append", choices=COLUMNS, help="only this one; repeatable")
    parser.add_argument("--again", action="store_true", help="forget earlier results")
    arguments = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    for entry in entries():
        known = {} if arguments.again else known_of(entry)
        columns = [column for column in arguments.column or COLUMNS if column not in known]
        if (arguments.model and entry.name not in arguments.model) or not columns:
            continue
        wrong = alone(fill, entry, columns)
        known = known_of(entry)
        if wrong:
            known |= {column: {"failed": wrong} for column in columns if column not in known}
            _write(entry, known)
        said = ", ".join(f"{column} {cell(known, column, ratio(known, column))}" for column in columns)
        sys.stdout.write(f"{entry.name}: {said}\n")
        sys.stdout.flush()
        write_text(HERE / "results" / "memory.md", table(entries(), list(COLUMNS)))


if __name__ == "__main__":
    main()
