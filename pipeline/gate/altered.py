"""Find results changed by hand: compare files with the digests of manifest.json and dvc.lock, and with the copy in git.

out/compile/MODEL/TARGET/manifest.json     sha256 of every file beside it
dvc.lock                                   md5 of every output of a stage, manifest.json too; git keeps it
out/cells/MODEL/TARGET.json                sha256 of the results of a cell, if the stage `cells` makes them
footprints/MODEL/TARGET.json               the copy of footprint.json, without times and errors; git keeps it
"""

from __future__ import annotations

from pathlib import Path

from ..artifacts.locked import CHANGED, Lock, altered_output
from ..artifacts.places import (
    REMAKE,
    canonical_model,
    compile_dir,
    kept_footprint,
    optimize_dir,
    parse_result,
    tuning_file,
)
from ..memory.footprint import Budget, FootprintReport
from ..support.digests import digest_of
from ..support.text_files import decode, read_text
from ..targets import Target

_FOOTPRINT = "footprint.json"


def why_altered(repo: Path, result: FootprintReport, target: Target, budget: Budget, lock: Lock | None) -> str | None:
    """Return the file of a result that was altered, with the next step; None if all are as they were made.

    Raises ConfigError for a malformed manifest.json or copy.
    """
    reason = (
        _compare_manifest(repo, result)
        or (None if lock is None else _compare_lock(repo, result, lock))
        or _compare_copy(repo, result, target, budget, lock)
    )
    return None if reason is None else f"altered: {reason} {REMAKE}"


def _compare_manifest(repo: Path, result: FootprintReport) -> str | None:
    folder = compile_dir(result.model, result.target)
    place = folder / "manifest.json"
    manifest = decode(dict, read_text(repo / place, REMAKE), str(place), REMAKE)
    files = manifest.get("files")
    if not isinstance(files, dict) or _FOOTPRINT not in files:
        return f"{place} does not list {_FOOTPRINT}, as those of an older passfit."
    for name, digest in files.items():
        file = folder / name
        if not (repo / file).is_file():
            return f"{file} is missing, which {place.name} lists."
        if digest_of(repo / file) != digest:
            return f"{file} differs from its sha256 in {place.name}. {CHANGED}"
    return None


def _compare_lock(repo: Path, result: FootprintReport, lock: Lock) -> str | None:
    """Compare the results of all steps of one library with dvc.lock."""
    model, target = result.model, result.target
    library = compile_dir(model, target)
    if lock.has_cells:
        imported = altered_output(repo, [canonical_model(model).parent], lock.outputs)
        return imported or lock.altered_cell(repo, model, target)
    if library.as_posix() not in lock.outputs:
        return f"dvc.lock does not record {library}: `dvc repro` did not make it."
    steps = [library, optimize_dir(model, target), canonical_model(model).parent]
    steps += [tuning_file(model, target).parent] if lock.has_tuning(model, target) else []
    return altered_output(repo, steps, lock.outputs)


def _compare_copy(repo: Path, result: FootprintReport, target: Target, budget: Budget, lock: Lock | None) -> str | None:
    """Compare a footprint with its copy, whose budget may be an earlier one; that of an earlier passfit holds all measurements."""
    place = kept_footprint(result.model, result.target)
    if not (repo / place).exists():
        recorded = lock is not None and place.as_posix() in lock.outputs
        return f"{place} is missing, which dvc.lock records." if recorded else None
    kept = parse_result(read_text(repo / place, REMAKE), str(place), result.model, result.target)
    copy = kept.within(budget, target.ram, target.flash)
    same = any(copy == each.within(budget, target.ram, target.flash) for each in (result, result.kept))
    return None if same else f"{place} is not a copy of {compile_dir(result.model, result.target) / _FOOTPRINT}."
