"""Measure explicit effects of passes on a model, and implicit effects of pairs.

Terms of OPASS (ICSME 2024): the explicit effect of a pass is its own; its implicit effect is on later passes.

    imported graph ── B ──► alone
          └── A ──► graph after A ── B ──► after A           implicit effect of A on B: "after A" less "alone"

B is a pass on the graph, or a tail other than TVM's default (TAILS in `evaluate/candidates.py`); A is a pass on the
graph, since nothing follows a tail. Footprints of graphs are taken by TVM's default tail. States are recognised by
their key, so the table of pairs costs no more than its distinct states.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from collections.abc import Sequence as Ordered
from contextlib import closing
from dataclasses import asdict, dataclass

from tvm.ir import IRModule

from ...memory import Footprint
from ...passes.base import Pass
from ...passes.sequence.catalogue import CATALOGUE_VERSION
from ...passes.sequence.sequence import specs_of
from ...targets import Target
from ..evaluate.candidates import TAILS, graph_passes
from ..evaluate.child import PATIENT
from ..evaluate.evaluation import Evaluator, uncompilable
from ..evaluate.forked import forked
from ..evaluate.scoring import Scorer
from ..evaluate.workers import Workers
from .relation import RELATIONS, Effect, relation

#: footprint fields a pass can change; the code is known only once a library is built
FIELDS = ("ram", "arena", "workspace", "weights", "bound", "floor", "kernels", "sum")

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Action:
    """Action: a pass on the graph or, if `down`, a tail."""

    passes: tuple[Pass, ...]
    down: bool = False

    @property
    def spec(self) -> str:
        return "; ".join(specs_of(self.passes))

    def after(self, prefix: tuple[Pass, ...]) -> tuple[Pass, ...]:
        """Return the whole sequence, without clean-up in between: single passes are measured."""
        return (*prefix, *self.passes) if self.down else (*prefix, *self.passes, *TAILS[0])


def effects(
    module: IRModule,
    target: Target,
    inputs: Ordered[str],
    outputs: Ordered[str],
    *,
    progress: Progress = lambda what, done, total: None,
    clock: dict[str, float] | None = None,
    workers: Callable[[Scorer], Workers] = forked(limits=PATIENT, farthest=4),
) -> dict:
    """Measure every pass alone, and after every other pass that changes the graph; return effects.json.

    `delta` is the change of each of FIELDS in its unit (bytes, or kernels); `changed` tells whether the graph changed
    (for a tail: whether the kernels differ from TVM's), whatever the footprint does. A pass that fails changes nothing,
    and is listed with the reason. Times are left out, since the same model gives the same bytes: `clock` receives the
    seconds of each pass alone, including scoring; without it, `workers` measure several at once. Raises ModelError if
    TVM's default passes fail.
    """
    evaluator = Evaluator(module, "profile", target, inputs, outputs, workers=workers, keep=clock is None)
    with closing(evaluator):
        return _effects(evaluator, target, progress, clock)


def _effects(evaluator: Evaluator, target: Target, progress: Progress, clock: dict[str, float] | None) -> dict:
    reference = evaluator.evaluate(TAILS[0])
    if reference.footprint is None:
        raise uncompilable(reference.failure)
    actions = [Action((each,)) for each in graph_passes()] + [Action(tail, down=True) for tail in TAILS[1:]]
    if clock is None:
        _compute_ahead(
            evaluator,
            [((), action) for action in actions],
            lambda done: progress("profiling passes", done, len(actions)),
        )
    alone = _all_alone(evaluator, actions, progress, {} if clock is None else clock)
    pairs = _all_pairs(evaluator, alone, progress)
    return {
        "catalogue": CATALOGUE_VERSION,
        "target": target.name,
        "reference": _fields(reference.footprint),
        "tried": {"passes": len(alone), "pairs": len(pairs), "states": evaluator.count},
        "passes": [_pass_item(action.spec, effect, alone, pairs) for action, effect in alone.items()],
        "pairs": [
            _pair_item(first.spec, second.spec, alone[second], effect)
            for (first, second), effect in pairs.items()
            if effect.changed or alone[second].changed
        ],
    }


_Alone = Mapping[Action, Effect]
_Pairs = Mapping[tuple[Action, Action], Effect]


def _all_alone(evaluator: Evaluator, actions: list[Action], progress: Progress, clock: dict[str, float]) -> _Alone:
    found = {}
    for done, action in enumerate(actions):
        progress("profiling passes", done, len(actions))
        started = time.monotonic()
        found[action] = _effect(evaluator, (), action)
        clock[action.spec] = time.monotonic() - started
    return found


def _all_pairs(evaluator: Evaluator, alone: _Alone, progress: Progress) -> _Pairs:
    firsts = [action for action, effect in alone.items() if effect.changed and not action.down]
    wanted = [(first, second) for first in firsts for second in alone if first != second]
    _compute_ahead(
        evaluator,
        [(first.passes, second) for first, second in wanted],
        lambda done: progress("profiling pairs", done, len(wanted)),
    )
    return {(first, second): _effect(evaluator, first.passes, second) for first, second in wanted}


def _compute_ahead(
    evaluator: Evaluator, wanted: Ordered[tuple[tuple[Pass, ...], Action]], done: Callable[[int], None]
) -> None:
    """Compute all that `_effect` asks for these prefixes and actions; the evaluator keeps it."""
    for number, _ in enumerate(evaluator.evaluate_all(action.after(prefix) for prefix, action in wanted)):
        done(number)
    for _ in evaluator.keys((*prefix, *action.passes) for prefix, action in wanted if not action.down):
        pass


def _effect(evaluator: Evaluator, prefix: tuple[Pass, ...], action: Action) -> Effect:
    """Measure the effect of `action` after `prefix`, whose graph compiles."""
    was, now = evaluator.evaluate((*prefix, *TAILS[0])), evaluator.evaluate(action.after(prefix))
    if now.footprint is None:
        return Effect(False, dict.fromkeys(FIELDS, 0), failed=now.failure)
    reached, left = (
        (now.key, was.key) if action.down else (evaluator.key((*prefix, *action.passes)), evaluator.key(prefix))
    )
    old, new = _fields(was.result), _fields(now.footprint)
    return Effect(reached != left, {field: new[field] - old[field] for field in FIELDS})


def _pass_item(spec: str, effect: Effect, alone: _Alone, pairs: _Pairs) -> dict:
    item = {"spec": spec, "changed": effect.changed, "delta": effect.delta}
    for name in RELATIONS:
        item[name] = [
            second.spec
            for (first, second), after in pairs.items()
            if first.spec == spec and relation(alone[second], after) == name
        ]
    return item | ({"failed": effect.failed} if effect.failed else {})


def _pair_item(first: str, second: str, alone: Effect, after: Effect) -> dict:
    return {
        "first": first,
        "second": second,
        "effect": relation(alone, after),
        "changed": after.changed,
        "delta": after.delta,
        "alone": {field: alone.delta[field] for field in ("ram", "sum")},
    } | ({"failed": after.failed} if after.failed else {})


def _fields(footprint: Footprint) -> dict[str, int]:
    fields = asdict(footprint)
    return {name: fields[name] for name in FIELDS}
