"""Gather the footprints and the measurement of a model into its report."""

from __future__ import annotations

from ..frontend.imported_model import ImportedModel
from ..memory.footprint import Baseline, Budget, Defect, Footprint, FootprintReport, Measured, SlowKernel
from ..support.strictness import spare
from ..targets import Target


def footprint_report(
    imported: ImportedModel,
    target: Target,
    budget: Budget | None,
    best: Footprint,
    baseline: Baseline,
    measured: Measured,
    exact: bool,
    defects: tuple[Defect, ...] = (),
    slow: tuple[SlowKernel, ...] = (),
) -> FootprintReport:
    """Report `best` next to `baseline`, with the limits of `budget` or of the device.

    `defects` are those of better plans, `slow` are its slow kernels.
    A quantised model is reported next to its float twin too.
    """
    from ..search.evaluate.beside_floats import beside_floats

    quantised = spare("the float twin", lambda: beside_floats(imported, target), lambda why: None)
    report = FootprintReport(
        imported.name, target.name, imported.start, best, baseline, measured, exact=exact,
        quantised=quantised, defects=defects, slow=slow,
    )  # fmt: skip
    return report.within(budget or Budget(), target.ram, target.flash)
