"""Results of a model on a target, made by hand."""

from __future__ import annotations

from dataclasses import replace

from passfit.data.accuracy import AccuracyReport, ClassScore, DataRecord, LibraryScore, Score, WorstSample
from passfit.memory import SavedPlan, plan_arena
from passfit.memory.footprint import Baseline, Budget, Footprint, FootprintReport, Measured, Start
from passfit.program import Program
from passfit.report.results import Capacity, Commit, Result, Results

from ..strategies import chain

KIB = 1024
EVIL = "<script>document.title='evil'</script><img src=http://example.org/x onerror=alert(1)>"
EFFECTS = {
    "target": "t",
    "passes": [{"spec": "order"}, {"spec": "legalize"}],
    "pairs": [
        {
            "first": "order",
            "second": "legalize",
            "effect": "enables",
            "delta": {"ram": -4096, "sum": 64},
            "alone": {"ram": 0, "sum": 0},
        }
    ],
}


def footprint(ram: int = 4 * KIB, model: str = "m", target: str = "t", **measured: object) -> FootprintReport:
    best = Footprint(
        ram=ram,
        flash=3000,
        arena=ram,
        workspace=0,
        weights=2000,
        code=1000,
        bound=ram,
        floor=64,
        proved=True,
        kernels=3,
        sum=ram,
    )
    ran = Measured(True, "native", None, 1.5, 0.0, 2e-7, verified_by="onnxruntime")
    base = Baseline.of(replace(best, ram=2 * ram, arena=2 * ram), 1500)
    return FootprintReport(model, target, Start(2 * ram, 5), best, base, replace(ran, **measured), Budget(ram=2 * ram))


def accuracy(
    value: float | None = 0.95, model: str = "m", target: str = "t", dog: float = 0.9, **fields
) -> AccuracyReport:
    """An accuracy on samples of two classes, with the worst of these; names are hostile."""
    library = LibraryScore("native", 1000, value, value, fields.pop("agreement", 1.0), 1e-7, True)
    return AccuracyReport(
        model, target, fields.pop("metric", "accuracy"), True, DataRecord(f"test{EVIL}.npz", "a" * 64, 1000, 1000),
        Score(1000, value), library,
        classes=(ClassScore(f"cat {EVIL}", 500, 1.0, 1.0), ClassScore("dog", 500, dog, dog)),
        worst=(WorstSample("7.png", "dog", "cat", "cat", 0.9),), **fields,
    )  # fmt: skip


def saved(program: Program) -> SavedPlan:
    return SavedPlan(program, plan_arena(program), 64)


def result(
    program: Program | None = None, model: str = "m", target: str = "t", passes: tuple[str, ...] = ("legalize", "order")
) -> Result:
    plan = saved(program or chain(64, 512, 256, 64))
    report = footprint(plan.plan.arena, model, target)
    kernels = {"run_ns": 900, "kernels": [{"step": 0, "kernel": "k0", "nodes": ["node0"], "ns": 900, "least_ns": 300}]}
    return Result(
        report,
        passes,
        plan,
        saved(chain(64, 512, 512, 64)),
        search(),
        kernels=kernels,
        capacity=Capacity(4 * KIB, 64 * KIB),
    )


def search() -> dict:
    point = {"lever": "split", "passes": [], "ram": 4096, "flash": None, "cycles": 1000, "extra_compute": 0.0}
    point |= {"weights": 256, "most_flash": 9999, "whole": False}
    tradeoff = {
        "objective": "ram",
        "ram": 9999,
        "flash": 9999,
        "within": True,
        "points": [point, {**point, "ram": 5000, "cycles": 900}],
        "chosen": 0,
    }
    levers = [{"lever": "given", "arena": 4096, "extra_compute": 0.0, "passes": []}]
    return {
        "tradeoff": tradeoff,
        "levers": levers,
        "ablation": [{"spec": "order", "ram": 64, "weights": 0, "kernels": 0, "sum": -8}],
    }


def bare() -> Result:
    """A result of `passfit optimize`: nothing but its footprint."""
    return Result(footprint(ran=False, how="not-run: nothing was compiled", max_rel_error=None))


def results(*found: Result, title: str = "repo") -> Results:
    """Results of a repo with a past."""
    shown = found or (result(), result(target="u"))
    past = {each.pair: footprint(9 * KIB, *each.pair) for each in shown}
    return Results(
        title, shown, {"m": EFFECTS}, (Commit("abcdef123", "First", past),), {"passfit": "0"},
        {pair: ("abcdef123 (First)", Result(each)) for pair, each in past.items()}, missing=["n @ t: there is no result"],
    )  # fmt: skip
