"""Write a model card in Markdown: what a library is, what it needs, how far it was checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..report.accuracy_table import accuracy_summary, score_text
from ..report.markdown import escaped
from ..support.sizes import format_bytes
from .facts import UNKNOWN, Facts

CARD = "MODEL_CARD.md"


def model_card(facts: Facts) -> str:
    """Return the model card of a result, the same text for the same facts."""
    report, made = facts.report, facts.manifest.get("versions", {})
    version = f" {made['passfit']}" if "passfit" in made else ""
    lines = [
        f"# {escaped(report.model)} for {escaped(report.target)}",
        "",
        f"C library of an ONNX model, compiled by passfit{version}. {_fit(facts)}",
        "",
        "## Model",
        "",
        *_table(("", ""), _model(facts)),
        "",
        "## Inputs and outputs",
        "",
        *_table(("", "dtype", "shape", "scale", "zero point", "form"), _ports(facts)),
        "",
        f"## On {escaped(report.target)}",
        "",
        f"{escaped(facts.target.description)} (`{facts.target.triple}`, {facts.target.cpu}).",
        "",
        *_table(("", "used", "budget", "capacity"), _sizes(facts)),
        "",
        *(f"* {line}" for line in _run(facts)),
        "",
        "## Accuracy",
        "",
        *(f"* {escaped(line)}" for line in _accuracy(facts)),
        "",
        *_table(("class", "samples", "file", "library"), _classes(facts)),
        *([""] if facts.evaluated and facts.evaluated.classes else []),
        "## Passes",
        "",
        *(f"{number}. `{spec}`" for number, spec in enumerate(facts.manifest.get("passes", ()), 1)),
        "",
        "## Files and tools",
        "",
        *_table(("file", "sha256"), ((f"`{name}`", f"`{digest}`") for name, digest in facts.digests.items())),
        "",
        *_table(("tool", "version"), made.items()),
    ]
    return "\n".join(lines) + "\n"


def _table(head: Sequence[str], rows) -> Iterator[str]:
    rows = list(rows)
    if not rows:
        return
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join('---' for _ in head)} |"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _fit(facts: Facts) -> str:
    report = facts.report
    limits = "budget" if (report.budget.ram, report.budget.flash) != (None, None) else "device"
    return f"It fits the {limits}." if report.fits else f"**It does not fit the {limits}.**"


def _model(facts: Facts) -> Iterator[tuple[str, str]]:
    source, licence = facts.source, facts.licence
    yield "source", escaped(source.get("source", UNKNOWN))
    yield "sha256", f"`{source['sha256']}`" if "sha256" in source else UNKNOWN
    yield "made by", escaped(source.get("producer", UNKNOWN))
    yield "author", escaped(source.get("author", UNKNOWN))
    name = escaped(licence.get("name", "")) or ("its text is in `LICENSE`" if "file" in licence else UNKNOWN)
    text = ", text in `LICENSE`" if licence.get("name") and "file" in licence else ""
    by = f" (stated by: {escaped(licence['stated_by'])})" if "stated_by" in licence else ""
    yield "licence", f"{name}{text}{by}"


def _ports(facts: Facts) -> Iterator[tuple[str, ...]]:
    for kind in ("inputs", "outputs"):
        for number, port in enumerate(facts.ports(kind)):
            shape = " × ".join(map(str, port["shape"])) or "scalar"
            scale, zero = (f"{port[key]:.9g}" if key in port else "" for key in ("scale", "zero_point"))
            yield (
                f"{kind[:-1]} {number}: {escaped(port['name'])}",
                port["dtype"],
                shape,
                scale,
                zero,
                escaped(port.get("form", "")),
            )


def _sizes(facts: Facts) -> Iterator[tuple[str, ...]]:
    best, budget, device = facts.report.best, facts.report.budget, facts.target
    limits = {"ram": (budget.ram, device.ram), "flash": (budget.flash, device.flash)}
    for name in ("ram", "arena", "workspace", "stack", "flash", "weights", "code"):
        of_budget, capacity = limits.get(name, (None, None))
        size = getattr(best, name)
        used = "not measured" if name == "stack" and not size else format_bytes(size)
        whole = name in limits
        yield (
            f"**{name}**" if whole else f"of it {name}",
            used,
            "" if not whole else "none" if of_budget is None else format_bytes(of_budget),
            format_bytes(capacity) if capacity is not None else "",
        )
    for region in best.regions:
        room = "none" if region.room is None else format_bytes(region.room)
        yield f"memory {escaped(region.name)}", format_bytes(region.used), room, format_bytes(region.size)


def _run(facts: Facts) -> Iterator[str]:
    ran = facts.report.measured
    time = "not measured" if ran.latency_ms is None else f"{ran.latency_ms:.3g} ms, the median on the compiling machine"
    yield f"latency: {time}"
    if ran.instructions is not None:
        yield f"instructions of a run: {ran.instructions:,}, counted by an emulator"
    if ran.estimated is not None:
        yield f"time on the device: {ran.estimated.summary} from the instructions of an emulator by class"
    if ran.cycles is not None:
        yield f"cycles of a run: {ran.cycles:,}, counted on the device"
    yield f"threads: {facts.manifest.get('threads', 1)}"


def _classes(facts: Facts) -> Iterator[tuple[str, ...]]:
    for each in () if facts.evaluated is None else facts.evaluated.classes:
        yield escaped(each.name), f"{each.samples:,}", score_text(each.reference), score_text(each.library)


def _accuracy(facts: Facts) -> Iterator[str]:
    report, made_from = facts.report, facts.manifest.get("made_from", {})
    if facts.evaluated is not None:
        data = facts.evaluated.data
        yield f"On samples of its users: {accuracy_summary(facts.evaluated)}."
        yield f"Samples: {data.source}, {data.samples:,}, of which {data.labelled:,} have labels; sha256 of their content: {data.digest}."
    yield facts.accuracy
    if report.measured.ran and "cases" in made_from:
        samples = report.measured.samples
        unseen = "" if facts.evaluated else ": inputs of its users were not seen"
        seen = f" and on {samples} samples of its users" if samples else unseen
        yield f"Compared on {made_from['cases']} cases of inputs drawn by seed {made_from.get('seed', 0)}{seen}."
        for port in facts.ports("inputs"):
            if "assumed" in port:
                yield f"Input '{port['name']}' was drawn as {port['assumed']}."
    if report.measured.given is not None and report.measured.given.summary:
        yield f"Quantised model: {report.measured.given.summary}."
    yield (
        "Every pass is exact up to the order of sums."
        if report.exact
        else "Lossy: the sequence has passes that change results by more than rounding."
    )
    for defect in report.defects:
        yield f"Defect: {defect.summary}."
    if facts.golden:
        yield f"Golden vectors: {facts.golden.get('cases')} cases, outputs of {facts.golden.get('outputs_of')}."
