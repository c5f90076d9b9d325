"""Judge the accuracy of libraries on the samples of their models: least value, largest loss, agreement, and loss since a revision."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ..artifacts.evaluated import Evaluated
from ..data.accuracy import AccuracyReport
from ..params.params import Params
from ..report.accuracy_table import accuracy_summary, score_text
from .amounts import format_amount, format_amounts
from .verdict import ACCURACIES, LimitKind, Pair, Verdict


@dataclass(frozen=True)
class Accuracies:
    """Accuracies of all models with samples, now and at an earlier revision: a text says why one is not known."""

    now: Mapping[Pair, Evaluated] = field(default_factory=dict)
    past: Mapping[Pair, AccuracyReport | str] = field(default_factory=dict)


def accuracy_verdicts(
    params: Params, model: str, target: str, accuracies: Accuracies, same_size: bool = False
) -> Iterator[Verdict]:
    """Judge the limits of accuracy of a model on a target, and its loss since the revision.

    `same_size`: its ram and flash are those of the revision.
    """
    limits, found = params.limits(model, target), accuracies.now.get((model, target))
    wanted = {
        quantity: limit
        for quantity, key in ACCURACIES.items()
        if (limit := getattr(limits, key.replace("-", "_"))) is not None
    }
    before = accuracies.past.get((model, target))
    if not wanted and before is None:
        return
    if found is None:
        if wanted:
            keys = ", ".join(f"{ACCURACIES[each]}: null" for each in wanted)
            why = (
                f"no data: models.{model} has no `data` to evaluate it on. Run `passfit add {params.models[model].source} --name {model} "
                f"--data SAMPLES`, or lift the limit: `budgets: {{{model}: {{{keys}}}}}` under targets.{target}."
            )
            yield _unchecked(model, target, "data", why)
        return
    report = found.report
    if report is None:
        yield _unchecked(model, target, found.kind, found.why)
        return
    values = {"accuracy": report.value, "accuracy loss": report.loss, "agreement": report.agreement}
    for quantity, limit in wanted.items():
        value = values[quantity]
        if value is None:
            yield _unchecked(model, target, "data", _unlabelled(report), quantity)
        else:
            yield _judge(report, quantity, value, limit)
    if before is not None:
        yield _since(report, before, limits.max_accuracy_loss or 0.0, params, same_size)


def accuracy_information(accuracies: Accuracies, verdicts: Iterable[Verdict]) -> list[str]:
    """Describe known accuracies, and the reasons for unknown ones without a verdict."""
    said = {each.why for each in verdicts}
    return [
        f"{model} @ {target}: {each.why if each.report is None else accuracy_summary(each.report)}"
        for (model, target), each in accuracies.now.items()
        if each.why not in said
    ]


def _unlabelled(report: AccuracyReport) -> str:
    data = report.data
    return (
        f"labels missing: {data.source} has none for its {data.samples:,} samples, so the accuracy is not known. "
        "Add labels, or limit min-agreement alone."
    )


def _judge(report: AccuracyReport, quantity: str, value: float, limit: float) -> Verdict:
    least = quantity == "agreement" or (quantity == "accuracy" and report.higher_is_better)
    ok = value >= limit if least else value <= limit
    far = format_amount(quantity, round(abs(limit - value), 12))
    used, allowed = format_amounts(quantity, value, limit)
    inside, outside = ("above", "below") if least else ("below", "over")
    distance = f"{far} {inside} its limit" if ok else f"{outside} its limit by {far}"
    parts = {
        "accuracy": f"{report.metric} on {report.data.labelled:,} samples",
        "accuracy loss": _loss(report),
        "agreement": f"with the file on {report.library.samples:,} samples, {report.library.how}",
    }
    why = f"{quantity} {distance} ({used} of {'at least' if least else 'at most'} {allowed}: {parts[quantity]})"
    return Verdict(report.model, report.target, quantity, "budget", value, limit, ok, why, least=least)


def _loss(report: AccuracyReport) -> str:
    """Locate the loss of accuracy: by quantisation, or by the library."""
    sides = (("float file", report.original), ("quantised file", report.reference)) if report.original else (
        ("file", report.reference),
    )  # fmt: skip
    said = [f"{name} {score_text(score.value)}" for name, score in sides if score.value is not None]
    return ", ".join([*said, f"library {score_text(report.value or 0.0)}"])


def _since(
    report: AccuracyReport, before: AccuracyReport | str, allowed: float, params: Params, same_size: bool
) -> Verdict:
    """Compare an accuracy with its value at an earlier revision; `allowed` may be lost, and what is accepted."""
    if isinstance(before, str):
        return replace(_unchecked(report.model, report.target, "growth", before), quantity="accuracy")
    if before.metric != report.metric:
        said = f"loss not checked: the metric was {before.metric} then, and is {report.metric} now"
        same = report.value or 0.0
        return Verdict(report.model, report.target, "accuracy", "growth", same, same, True, said, note=said)
    base, value = before.value, report.value
    if base is None or value is None:
        return _unchecked(
            report.model, report.target, "growth", _unlabelled(report if value is None else before), "accuracy"
        )
    sign = 1 if report.higher_is_better else -1
    lost, limit = round(sign * (base - value), 12), round(base - sign * allowed, 12)
    then, now = format_amounts("accuracy", base, value)
    others = "" if before.data.digest == report.data.digest else ", on other samples"
    moved = f"{report.metric} went from {then} to {now}{others}"
    verdict = Verdict(
        report.model, report.target, "accuracy", "growth", value, limit, lost <= allowed, moved, base, least=sign > 0
    )  # fmt: skip
    if verdict.ok:
        return verdict
    accepted = params.targets[report.target].accepted_growth.get(report.model)
    if accepted is not None and accepted.accuracy is not None and sign * (value - accepted.accuracy) >= 0:
        said = f"{moved}, which is accepted: {accepted.reason}"
        return replace(verdict, limit=accepted.accuracy, ok=True, why=said, note=said)
    size = ", with the same ram and flash" if same_size else ""
    room = f"max-accuracy-loss allows {score_text(allowed)}" if allowed else "no max-accuracy-loss allows that"
    return replace(verdict, why=f"{moved}, {score_text(lost)} worse{size}: {room}.")


def _unchecked(model: str, target: str, kind: LimitKind, why: str, quantity: str = "accuracy") -> Verdict:
    return Verdict(model, target, quantity, kind, None, None, False, why)
