"""Write the files of a run besides the library: search, footprint, plans, manifest."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..data.accuracy import AccuracyReport, report_fields
from ..errors import NumericError
from ..frontend.imported_model import ImportedModel
from ..frontend.source.provenance import LICENCE_FILE
from ..memory.footprint import Baseline, Budget, Defect, FootprintReport, Measured
from ..search.settings import RAM
from ..support.digests import digest_of, json_values
from ..support.result_folder import lock, move_files
from ..support.sizes import format_bytes
from ..support.strictness import spare
from ..support.text_files import json_lines, write_text
from ..targets import Target
from ..verify.settings import VerifySettings
from .origin import PACKAGES, verify_record
from .places import ACCURACY, PLAN, PLAN_BEFORE

if TYPE_CHECKING:
    from ..kernels.lower.lower import Lowered
    from ..passes.sequence.sequence import Sequence as PassSequence
    from ..search.pareto import Front
    from ..search.search import SearchResult
    from ..tuning.database import AdoptedTuning
    from ..verify.build_plan import BuiltPlan

#: errors of a refused library, in the folder it would have gone to
COMPARISON = "comparison.json"
_OF_SEARCHES = ("search.json", "trajectory.json", "front.json")


def write_search(
    result: SearchResult,
    front: Front | None,
    made_from: Mapping[str, object],
    folder: Path,
    defects: Sequence[Defect] = (),
) -> None:
    """Write sequence.json, trajectory.json, and search.json with `made_from` (see `artifacts/origin.py`).

    With a `front`, write front.json too. `defects` are those of plans that were built in vain.
    """
    from ..passes.sequence.sequence import write_sequence

    write_sequence(result.sequence, folder / "sequence.json")
    write_text(folder / "trajectory.json", json.dumps(list(result.trajectory), indent=1) + "\n")
    found = {
        "strategy": result.strategy,
        **({"family": result.family} if result.family else {}),
        "evaluations": result.evaluations,
        "closed": result.closed,
        **({"ended_by": result.ended_by} if result.ended_by else {}),
        "objective": RAM if result.tradeoff is None else result.tradeoff.objective,
        **({"tradeoff": asdict(result.tradeoff)} if result.tradeoff is not None else {}),
        "ablation": [asdict(worth) for worth in result.ablation],
        "levers": [asdict(lever) for lever in result.levers],
        "extra_compute": result.extra_compute,
        "next": result.next,
        "failures": result.failures,
        "rejected": result.rejected,
        **({"defects": [asdict(each) for each in defects]} if defects else {}),
        "made_from": dict(made_from),
    }
    write_text(folder / "search.json", json_lines(found))
    if front is not None:
        write_text(folder / "front.json", json_lines(asdict(front)))


@contextmanager
def comparison_kept(out: Path) -> Iterator[None]:
    """Write comparison.json to `out` if the block refuses a library; else remove an earlier one.

    It holds the errors of each output, in the output's unit, and the allowed errors.
    """
    place = out / COMPARISON
    try:
        yield
    except NumericError as error:
        if error.outputs:
            write_text(place, json_lines({"refused": error.what, "outputs": list(error.outputs)}))
            error.add_place(place)
        raise
    place.unlink(missing_ok=True)
    (out / ACCURACY).unlink(missing_ok=True)  # of the library before


def replace_result(folder: Path, out: Path) -> None:
    """Move a result to `out`, and remove the files of the result there that the new one lacks.

    They are those that manifest.json records, as they were written; searches stay.
    """
    before = _recorded(out)
    move_files(folder, out)
    for name in before.keys() - _recorded(out).keys() - set(_OF_SEARCHES):
        if (file := out / name).is_file() and digest_of(file) == before[name]:
            file.unlink(missing_ok=True)


def _recorded(out: Path) -> dict[str, str]:
    """Return the digests by name of the files in `out` that its manifest records; none without a manifest."""
    try:
        files = json.loads((out / "manifest.json").read_text(encoding="utf-8"))["files"].items()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
    return {name: digest for name, digest in files if Path(name).name == name}


def write_footprint(report: FootprintReport, folder: Path) -> None:
    """Write footprint.json to `folder`."""
    from ..memory import write_report

    write_report(report, folder / "footprint.json")


def write_accuracy(report: AccuracyReport, path: Path) -> None:
    """Write accuracy.json, the same bytes for the same figures. Raises OutputError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json_lines(json_values(report_fields(report))))


def write_library(
    imported: ImportedModel,
    built: BuiltPlan,
    sequence: PassSequence,
    target: Target,
    budget: Budget | None,
    baseline: Baseline,
    measured: Measured,
    defects: tuple[Defect, ...],
    folder: Path,
) -> FootprintReport:
    """Write sequence.json, footprint.json and the plans next to a library; return its report.

    `defects` are those of plans that were built in vain.
    """
    from ..memory.placement.account import footprint_of
    from ..passes.sequence.sequence import write_sequence
    from ..tuning.slow_kernels import slow_kernels
    from .footprint_report import footprint_report

    best = footprint_of(built.lowered.program, built.plan, built.workspace, built.library.code_bytes, target, measured)
    slow = spare("the roofline of kernels", partial(slow_kernels, built.lowered, target), lambda why: ())
    report = footprint_report(imported, target, budget, best, baseline, measured, not sequence.lossy, defects, slow)
    write_sequence(sequence, folder / "sequence.json")
    write_footprint(report, folder)
    write_plans(built, target, folder)
    return report


def deliver_first(folder: Path, out: Path, report: FootprintReport) -> str:
    """Move a library built during its search to `out`, over an earlier search; say so."""
    with lock(out):
        replace_result(folder, out)
        for name in _OF_SEARCHES:
            (out / name).unlink(missing_ok=True)
    return f"a first library of {format_bytes(report.best.ram)} is in {out}"


def write_plans(built: BuiltPlan, target: Target, folder: Path) -> None:
    """Write plan.json, and plan-before.json: the same kernels in the order given, nothing shared or split."""
    from ..memory import SavedPlan, plan_arena, write_plan
    from ..tir.counts.product_operands import multiply_adds

    saved = SavedPlan(built.lowered.program, built.plan, target.alignment, built.library.code)
    write_plan(saved, folder / PLAN)
    before = spare(PLAN_BEFORE, partial(plan_arena, built.before.program, target.alignment), lambda why: None)
    if before is not None:
        macs = {name: multiply_adds(kernel) for name, kernel in built.before.kernels.items()}
        whole = SavedPlan(built.before.program, before, target.alignment, macs=macs)
        write_plan(whole, folder / PLAN_BEFORE)


def write_manifest(
    imported: ImportedModel,
    lowered: Lowered,
    target: Target,
    sequence: PassSequence,
    tuning: AdoptedTuning,
    verify: VerifySettings,
    folder: Path,
    asked: tuple[PassSequence, AdoptedTuning] | None = None,
) -> None:
    """Write manifest.json: passes, versions, inputs, outputs, origin, sha256 of all other files; and the model's licence text.

    `asked` are the sequence and the tuning that were to be built, where another plan was delivered.
    """
    from ..codegen import c_identifier
    from ..frontend.quantised.port_scales import port_facts
    from ..verify.inputs import assumed_inputs

    program, facts = lowered.program, port_facts(imported.drawn_for)
    drawn = verify.samples is None
    assumed = spare("the assumed inputs", partial(assumed_inputs, imported.drawn_for), lambda why: {}) if drawn else {}

    def ports(group: tuple) -> list[dict]:
        tensors = [(port.name, program.tensors[port.tensor]) for port in group]
        return [
            {"name": name, "shape": list(tensor.shape), "dtype": tensor.dtype}
            | facts.get(name, {})
            | ({"assumed": assumed[name]} if group is program.inputs and name in assumed else {})
            for name, tensor in tensors
        ]

    if text := imported.provenance.licence.text:
        (folder / LICENCE_FILE).write_bytes(text)
    files = {file.name: digest_of(file) for file in sorted(folder.iterdir()) if file.is_file()}
    manifest = {
        "model": imported.name,
        "target": target.name,
        "passes": list(sequence.specs),
        "exact": not sequence.lossy,
        "versions": {each: importlib.metadata.version(each) for each in PACKAGES},
        "io": {"name": c_identifier(imported.name), "inputs": ports(program.inputs), "outputs": ports(program.outputs)},
        "source": imported.provenance.record,
        "made_from": {**imported.record, **verify_record(verify, sequence.lossy, target)},
        "files": files,
    }
    if target.threads > 1:
        manifest |= {"threads": target.threads, "link": ["-lpthread"]}
    if target.opt != "balanced":
        manifest["opt"] = target.opt
    if target.index_checks != "fail":
        manifest["index_checks"] = target.index_checks
    if tuning:
        manifest["tuning"] = tuning.digest
    if asked is not None:
        manifest["asked"] = {"passes": list(asked[0].specs), **({"tuning": asked[1].digest} if asked[1] else {})}
    write_text(folder / "manifest.json", json_lines(manifest))
