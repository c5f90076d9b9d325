"""Compare two results: figures, passes, and the buffers at the peak, whose changes add up to that of all bytes alive.

ram 9.6 KiB → 12.1 KiB    because    relu_3 +2.5 KiB at the peak, from the ONNX nodes Conv_12 and Relu_13
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...data.accuracy import AccuracyReport
from ...memory.footprint import FootprintReport, Measured
from ...support.sizes import format_bytes
from ..accuracy_table import moved_classes, score_text
from ..arena.explain import Explanation
from ..results import Result

#: figures of a footprint, in the order shown
_SIZES = ("ram", "arena", "workspace", "stack", "flash", "weights", "code")


@dataclass(frozen=True)
class Figure:
    """One figure before and after, in `unit`: bytes, ms, a count, a share, or a score; None where it is not known."""

    name: str
    unit: str
    before: float | None
    after: float | None

    @property
    def change(self) -> float | None:
        """Return the difference."""
        return None if self.before is None or self.after is None else self.after - self.before

    @property
    def changed(self) -> bool:
        """Return whether both are known and differ, or only one is known."""
        return self.before != self.after


@dataclass(frozen=True)
class BufferChange:
    """Bytes of a buffer or a weight before and after; 0 if it does not count.

    `nodes` are the ONNX nodes of the kernel that makes it, `kernel` is its name; neither is there for inputs and weights.
    """

    name: str
    before: int
    after: int
    nodes: tuple[str, ...] = ()
    kernel: str = ""

    @property
    def change(self) -> int:
        """Return the growth, in bytes."""
        return self.after - self.before


@dataclass(frozen=True)
class Comparison:
    """Difference of two results of a model on a target.

    `dropped` and `added` are pass specs; `reordered` tells whether only their order differs. `buffers` are those alive
    at the peaks that differ there, `weights` the ones that differ, the largest growth first. `peaks` are the kernels at
    the peaks, before and after. `earlier` names model and target of the result before where they are others. `classes` are those whose share of right decisions differs, with both. `unknown` says what could not be compared, and `advice` what would lower the arena.
    """

    model: str
    target: str
    figures: tuple[Figure, ...]
    dropped: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    reordered: bool = False
    buffers: tuple[BufferChange, ...] = ()
    weights: tuple[BufferChange, ...] = ()
    peaks: tuple[str, str] = ("", "")
    unknown: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    earlier: str = ""
    classes: tuple[tuple[str, float, float], ...] = ()

    @property
    def changed(self) -> tuple[Figure, ...]:
        """Return the figures that differ."""
        return tuple(each for each in self.figures if each.changed)

    @property
    def same(self) -> bool:
        """Return whether nothing differs."""
        more = self.reordered or self.buffers or self.weights or self.classes
        return not (self.changed or self.dropped or self.added or more)

    @property
    def grown(self) -> tuple[BufferChange, ...]:
        """Return the buffers that take more at the peak."""
        return tuple(each for each in self.buffers if each.change > 0)


def compare(before: Result, after: Result) -> Comparison:
    """Compare two results of one model on one target, or of two."""
    then, now = before.explanation(), after.explanation()
    missing = [side for side, found in (("before", then), ("after", now)) if found is None]
    unknown = [f"buffers: there is no plan.json of the result {' and '.join(missing)}"] if missing else []
    if passless := [side for side, each in (("before", before), ("after", after)) if each.passes is None]:
        unknown.append(f"sequence: there is no sequence.json of the result {' and '.join(passless)}")
    evaluated = before.accuracy, after.accuracy
    unknown += [f"accuracy: {each}" for each in _why_not_compared(*evaluated)]
    one, two = before.passes or (), after.passes or ()
    known = not passless
    titles = [f"{each.model} @ {each.target}" for each in (before.footprint, after.footprint)]
    return Comparison(
        model=after.footprint.model,
        target=after.footprint.target,
        figures=(*figures(before.footprint, after.footprint), *_accuracies(*evaluated)),
        dropped=tuple(each for each in one if each not in two) if known else (),
        added=tuple(each for each in two if each not in one) if known else (),
        reordered=known and one != two and sorted(one) == sorted(two),
        buffers=_at_peaks(then, now) if then and now else (),
        weights=_weights(before, after),
        peaks=(_peak(then), _peak(now)),
        unknown=tuple(unknown),
        advice=() if now is None else (*now.advice, *after.remedies()),
        earlier=titles[0] if titles[0] != titles[1] else "",
        classes=_classes(*evaluated),
    )


def _accuracies(before: AccuracyReport | None, after: AccuracyReport | None) -> Iterable[Figure]:
    """Yield metric, loss and agreement on the samples of two results."""
    metrics = [each.metric for each in (before, after) if each is not None]
    if len(set(metrics)) == 1:
        for name, part in ((metrics[0], "value"), ("accuracy loss", "loss"), ("agreement", "agreement")):
            one, two = (None if each is None else getattr(each, part) for each in (before, after))
            yield Figure(name, "score", one, two)


def _classes(before: AccuracyReport | None, after: AccuracyReport | None) -> tuple[tuple[str, float, float], ...]:
    return () if before is None or after is None else tuple(moved_classes(before, after))


def _why_not_compared(before: AccuracyReport | None, after: AccuracyReport | None) -> Iterable[str]:
    if (before is None) != (after is None):
        yield f"the result {'before' if before is None else 'after'} was not evaluated"
    elif before is not None and after is not None and before.metric != after.metric:
        yield f"the metric was {before.metric} before, and is {after.metric} after"
    elif before is not None and after is not None and before.data.digest != after.data.digest:
        yield "the samples are others: so is what they say"


def figures(before: FootprintReport, after: FootprintReport) -> Iterable[Figure]:
    """Yield the figures of two footprints, and of their measurements."""
    for name in _SIZES:
        yield Figure(name, "bytes", getattr(before.best, name), getattr(after.best, name))
    yield Figure("kernels", "count", before.best.kernels, after.best.kernels)
    measured = tuple((_measured(each.measured)) for each in (before, after))
    for name, unit in (
        ("latency", "ms"),
        ("estimated time", "ms"),
        ("instructions", "count"),
        ("max error", "share"),
        ("elements that differ", "share"),
        ("same decisions", "share"),
    ):
        one, two = measured[0][name], measured[1][name]
        if one is not None or two is not None:
            yield Figure(name, unit, one, two)


def shown(value: float | None, unit: str) -> str:
    """Write a figure with its unit; a dash where it is not known."""
    if value is None:
        return "–"
    if unit == "bytes":
        return format_bytes(int(value))
    if unit == "ms":
        return f"{value:.3g} ms"
    if unit == "score":
        return score_text(value)
    return f"{value:.2g}" if unit == "share" else f"{value:,.0f}"


def shown_change(figure: Figure) -> str:
    """Write the change of a figure, with its share of any earlier value."""
    if figure.change is None:
        return ""
    if not figure.change:
        return "="
    sign, size = ("+" if figure.change > 0 else "−"), shown(abs(figure.change), figure.unit)
    return f"{sign}{size}" + (f" ({figure.change / figure.before:+.1%})".replace("-", "−") if figure.before else "")


def _measured(measured: Measured) -> Mapping[str, float | None]:
    given = measured.given
    return {
        "latency": measured.latency_ms,
        "estimated time": None if measured.estimated is None else measured.estimated.likely,
        "instructions": measured.instructions,
        "max error": measured.max_rel_error,
        "elements that differ": None if given is None else given.differing,
        "same decisions": None if given is None else given.same_decisions,
    }


def _peak(found: Explanation | None) -> str:
    return "" if found is None or found.peak is None else found.peak.kernel


def _at_peaks(before: Explanation, after: Explanation) -> tuple[BufferChange, ...]:
    """Return the buffers whose bytes at the peak differ; they are matched by their name, that of an ONNX tensor."""
    one, two = ({each.name: each for each in found.alive} for found in (before, after))
    changes = []
    for name in {**one, **two}:
        then, now = one.get(name), two.get(name)
        made = now or then
        sizes = (0 if then is None else then.nbytes, 0 if now is None else now.nbytes)
        if made is not None and sizes[0] != sizes[1]:
            changes.append(BufferChange(name, *sizes, made.nodes, made.producer or ""))
    return _ordered(changes)


def _weights(before: Result, after: Result) -> tuple[BufferChange, ...]:
    """Return the weights of other sizes, matched by the name of their initializer."""
    if before.saved is None or after.saved is None:
        return ()
    programs = before.saved.program, after.saved.program
    if len({any(each.initializers for each in program.weights) for program in programs}) > 1:
        return ()  # a plan of an earlier passfit, whose weights have numbers for names
    one, two = ({each.name: each.nbytes for each in program.weights} for program in programs)
    names = [name for name in {**one, **two} if one.get(name, 0) != two.get(name, 0)]
    return _ordered([BufferChange(name, one.get(name, 0), two.get(name, 0)) for name in names])


def _ordered(changes: list[BufferChange]) -> tuple[BufferChange, ...]:
    return tuple(sorted(changes, key=lambda each: (-each.change, each.name)))
