"""What each pass alone does to a model: the explicit effects."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Ordered
from dataclasses import asdict

from tvm.ir import IRModule

from ..memory import Footprint
from ..passes.registry import CATALOGUE_VERSION
from ..targets import Target
from .actions import TAILS, graph_passes
from .evaluation import Evaluation, Evaluator


def effects(
    module: IRModule,
    target: Target,
    inputs: Ordered[str],
    outputs: Ordered[str],
    *,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> dict:
    """The object behind effects.json: what each pass of the catalogue changes when it is added to TVM's default.

    `delta` is the change of each footprint field, in its unit (bytes, or kernels). Milliseconds are left out: the
    same model gives the same bytes. A pass that fails is listed with why.
    """
    evaluator = Evaluator(module, "profile", target, inputs, outputs)
    default = TAILS[0]
    reference = evaluator.evaluate(default)
    candidates = [(each.spec, (each, *default)) for each in graph_passes()]
    candidates += [("; ".join(each.spec for each in tail), tail) for tail in TAILS[1:]]
    found = []
    for done, (spec, passes) in enumerate(candidates):
        progress("profiling", done, len(candidates))
        found.append(_effect(spec, evaluator.evaluate(passes), reference))
    assert reference.footprint is not None or reference.failure
    return {
        "catalogue": CATALOGUE_VERSION,
        "target": target.name,
        "reference": _fields(reference.footprint) if reference.footprint else {"failed": reference.failure},
        "passes": found,
        "pairs": [],
    }


def _effect(spec: str, tried: Evaluation, reference: Evaluation) -> dict:
    if tried.footprint is None or reference.footprint is None:
        return {"spec": spec, "changed": False, "failed": tried.failure}
    before, after = _fields(reference.footprint), _fields(tried.footprint)
    delta = {field: after[field] - before[field] for field in before}
    return {
        "spec": spec,
        "changed": tried.key != reference.key,
        "delta": delta,
        "enables": [],
        "disables": [],
    }


def _fields(footprint: Footprint) -> dict[str, int]:
    """The fields a pass can change; the code is known only once a library is built."""
    fields = asdict(footprint)
    return {name: fields[name] for name in ("ram", "arena", "workspace", "weights", "bound", "floor", "kernels", "sum")}
