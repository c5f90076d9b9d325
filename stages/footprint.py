"""Stage `footprint`: judge a footprint by its budget, and write the copy kept in git."""

from __future__ import annotations

from collections.abc import Mapping

from passfit.artifacts.places import REMAKE, compile_dir, kept_footprint, parse_result
from passfit.memory.files.footprint_file import text_for_git
from passfit.params.params import Params
from passfit.stages._common import budget_of, run_stage, target_of
from passfit.stages._lines import fits_line
from passfit.support.text_files import read_text, write_text
from passfit.targets import Target


def footprint(params: Params, model: str, target: str, catalogue: Mapping[str, Target] | None = None) -> str:
    """Write footprints/MODEL/TARGET.json: DVC keeps libraries, git keeps footprints.

    So a review shows the cost of a change, and the gate can compare revisions. The copy leaves out times and errors, which
    differ from run to run. A result over budget is not an error here.
    """
    place = compile_dir(model, target) / "footprint.json"
    budget, device = budget_of(params, model, target), target_of(params, model, target, catalogue)
    result = parse_result(read_text(place, REMAKE), str(place), model, target).within(budget, device.ram, device.flash)
    kept = kept_footprint(model, target)
    kept.parent.mkdir(parents=True, exist_ok=True)
    write_text(kept, text_for_git(result))
    return fits_line(result, device.ram, device.flash)


if __name__ == "__main__":
    run_stage(footprint, "model", "target")
