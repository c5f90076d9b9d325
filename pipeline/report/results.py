"""Hold the results of a model on a target, as the page and the comparison read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..data.accuracy import AccuracyReport
from ..memory.files.plan_file import SavedPlan
from ..memory.footprint import FootprintReport
from ..memory.placement.plan_arena import ArenaPlan
from ..program import Program
from ..verify.measure.run_cycles import RunCycles
from .arena.explain import Explanation, explain
from .arena.explain_flash import FlashExplained, explain_flash
from .arena.explain_nodes import NodesExplained, explain_nodes
from .front_table import remedy_lines
from .levers import LeversFound

Pair = tuple[str, str]
#: object of a JSON file
Json = Mapping[str, Any]


@dataclass(frozen=True)
class Capacity:
    """Memory of a device, in bytes."""

    ram: int
    flash: int


@dataclass(frozen=True)
class Result:
    """Results of one model on one target, as far as they are there.

    `saved` is the plan of the library, `before` that of the same kernels in the order given, with nothing shared.
    `search`, `front`, `kernels` and `cycles` are the contents of the files of those names. `levers` are those that led to the
    arena, None if they are not known. `accuracy` is that on the model's samples; without it, `why_unevaluated` may say why. `declared`: by params.yaml, whose settings remedies name; else those of a command. `advice` are sentences on a result that does not fit.
    """

    footprint: FootprintReport
    passes: tuple[str, ...] | None = None
    saved: SavedPlan | None = None
    before: SavedPlan | None = None
    search: Json | None = None
    front: Json | None = None
    kernels: Json | None = None
    cycles: RunCycles | None = None
    levers: LeversFound | None = None
    accuracy: AccuracyReport | None = None
    why_unevaluated: str = ""
    capacity: Capacity | None = None
    declared: bool = False
    advice: Sequence[str] = ()

    @property
    def pair(self) -> Pair:
        """Return the model and the target."""
        return self.footprint.model, self.footprint.target

    @property
    def name(self) -> str:
        """Return both in words."""
        return f"{self.footprint.model} @ {self.footprint.target}"

    @property
    def planned(self) -> tuple[Program, ArenaPlan] | None:
        """Return the program and its plan."""
        return None if self.saved is None else (self.saved.program, self.saved.plan)

    @property
    def why_untimed(self) -> str:
        """Return why kernels have no times, or how to time them; empty if they have."""
        if self.kernels and self.kernels["kernels"]:
            return ""
        if why := (self.kernels or {}).get("why"):
            return why
        if self.footprint.measured.how != "native":
            return f"kernels are timed where the library runs natively, this one: {self.footprint.measured.how}"
        return f"`profile: {{kernels: true}}` in params.yaml, then `passfit add --target {self.pair[1]}`, lets `dvc repro` time them"

    def explanation(self) -> Explanation | None:
        """Explain the arena, if its plan is there."""
        if self.saved is None:
            return None
        return explain(self.saved.program, self.saved.plan, self.saved.alignment, self.levers)

    def remedies(self) -> list[str]:
        """Say which settings of the search lower ram."""
        return remedy_lines(self.search if self.levers else None, self.footprint.best, self.declared)

    def nodes(self) -> NodesExplained | None:
        """Explain a run node by node, if the plan is there."""
        return None if self.saved is None else explain_nodes(self.saved, self.before, self.cycles)

    def flash(self) -> FlashExplained | None:
        """Explain flash, if the plan is there."""
        return None if self.saved is None else explain_flash(self.saved, self.footprint.best)


@dataclass(frozen=True)
class Judgement:
    """Verdict of the gate on a model and a target: why it fails, empty if all limits hold; the limit most in use, and its part in use."""

    why: str
    tightest: str
    strain: float


@dataclass(frozen=True)
class Commit:
    """Commit that changed footprints or accuracies: its short hash, the first line of its message, and those it has."""

    hash: str
    subject: str
    footprints: Mapping[Pair, FootprintReport]
    accuracies: Mapping[Pair, AccuracyReport] = field(default_factory=dict)


@dataclass(frozen=True)
class Results:
    """Everything a page shows. `results` are in the order of params.yaml, `history` is in order of time.

    `effects` are the objects of effects.json by model. `versions` are those of the tools that made the results.
    `before` are results to compare with, each after its name; `since` is the revision asked for, if any. `missing` says what is missing, with the reason and the next step.
    `judged` are the gate's verdicts on the results of a repo.
    """

    title: str
    results: Sequence[Result]
    effects: Mapping[str, Json] = field(default_factory=dict)
    history: Sequence[Commit] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    before: Mapping[Pair, tuple[str, Result]] = field(default_factory=dict)
    since: str = ""
    missing: Sequence[str] = ()
    judged: Mapping[Pair, Judgement] = field(default_factory=dict)

    def holds(self, result: Result) -> bool:
        """Return whether a result keeps its limits: all that the gate knows, else its memories."""
        judged = self.judged.get(result.pair)
        return result.footprint.fits if judged is None else not judged.why
