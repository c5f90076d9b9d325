"""Stage `kernels`: time the kernels of a library beside their roofline, for the report, if params.yaml asks for it."""

from __future__ import annotations

from passfit import api
from passfit.artifacts.places import canonical_model, kernels_file, optimize_dir, tuning_file
from passfit.params.params import Params
from passfit.report.progress import console_progress
from passfit.stages._common import entry, run_stage, target_of, write_json
from passfit.targets import how_to_run


def kernels(params: Params, model: str, target: str) -> str:
    """Write out/profile/MODEL/TARGET/kernels.json: times of this machine, which the report alone reads.

    Nothing is timed if profile.kernels is false, or this machine does not run the target; the file then says why.
    """
    entry(params, "models", model)
    device, out = target_of(params, model, target), kernels_file(model, target)
    runner = how_to_run(device)
    why = "" if params.profile.kernels else "profile.kernels is false in params.yaml"
    if not why and not runner.native:
        why = f"this machine does not run {target} natively: {runner.how}"
    if why:
        write_json(out, {"model": model, "target": target, "why": why, "run_ns": 0, "kernels": []})
        return f"{model} @ {target}: kernels not timed: {why}"
    out.parent.mkdir(parents=True, exist_ok=True)
    with console_progress() as progress:
        found = api.profile_kernels(
            canonical_model(model),
            device,
            out,
            sequence=optimize_dir(model, target) / "sequence.json",
            tuning=tuning_file(model, target) if params.tuning(target).seconds else None,
            name=model,
            progress=progress,
        )
    return f"{model} @ {target}: {len(found['kernels'])} kernels in {found['run_ns'] / 1e6:.3g} ms"


if __name__ == "__main__":
    run_stage(kernels, "model", "target")
