"""Compare the default search with every strategy: never worse by its objective, closed or not."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("tvm")

from hypothesis import HealthCheck, assume, given, settings

from passfit.errors import ModelError
from passfit.search.strategies import STRATEGIES
from passfit.targets import get_target

from ..profiles import examples
from .mixed_models import mixed_models

pytestmark = pytest.mark.tvm
TARGET = get_target("x86-64")
#: half of ReBench, where it lies beside this checkout or above
SHARED = next((found for each in Path(__file__).parents if (found := each / "shared" / "rebench").is_dir()), None)
OURS = "orchestrated"


def reached(module, ports, strategy: str, objective: str, evaluations: int) -> tuple[int, bool]:
    """The objective in bytes, and whether the search closed."""
    from passfit.search.search import search
    from passfit.search.strategies.trace import Limits

    limits = Limits(evaluations=evaluations)
    result = search(module, "m", TARGET, *ports, strategy=strategy, objective=objective, limits=limits)
    return getattr(result.best, objective), result.closed


def beaten(module, ports, evaluations: int, objectives: tuple[str, ...] = ("ram", "sum")) -> list[str]:
    """The strategies that reach less than the default one."""
    found = []
    for objective in objectives:
        ours, closed = reached(module, ports, OURS, objective, evaluations)
        for strategy in sorted({*STRATEGIES} - {OURS}):
            theirs, _ = reached(module, ports, strategy, objective, evaluations)
            if theirs < ours:
                found.append(f"{objective}: {strategy} {theirs} < {ours}{' (closed)' if closed else ''}")
    return found


@settings(max_examples=examples(5), suppress_health_check=list(HealthCheck))
@given(mixed_models())
def test_no_strategy_beats_the_default_one_on_random_graphs(model):
    from passfit.frontend.canonicalise import canonicalize
    from passfit.frontend.imported_model import port_names
    from passfit.frontend.relax.to_relax import to_relax

    try:
        canonical = canonicalize(model)
        module = to_relax(canonical)
    except ModelError:
        assume(False)
    assert beaten(module, port_names(canonical), 40) == []


@pytest.mark.slow
@pytest.mark.skipif(SHARED is None, reason="shared/rebench is not there")
@pytest.mark.parametrize("name", ["03", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("07", "09"))])
def test_no_strategy_beats_the_default_one_on_the_shared_graphs(name):
    from passfit.frontend.imported_model import load, port_names

    imported = load(SHARED / f"{name}.onnx")
    assert beaten(imported.graph, port_names(imported.onnx), 64, ("ram",)) == []
