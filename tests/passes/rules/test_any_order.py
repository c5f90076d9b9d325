"""Rules in any order keep the results of random graphs, and come to an end.

ONNX Runtime runs the graph as drawn; the interpreter runs the module before and behind the rules. How often each rule
fired is counted: a rule that no graph meets is not tested by this.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ...models import run as run_onnx
from ...models import save
from ...profiles import examples

pytestmark = [pytest.mark.tvm, pytest.mark.slow]
#: by default half of them, enough for every rule to fire
GRAPHS = 400


@pytest.fixture(scope="module")
def fired(tmp_path_factory: pytest.TempPathFactory) -> Counter[str]:
    """Run all graphs, and count the values each rule replaced."""
    folder, counts = tmp_path_factory.mktemp("random"), Counter[str]()

    @settings(max_examples=examples(GRAPHS))
    @given(st.integers(0, 2**32 - 1))
    def check(seed: int) -> None:
        _check(seed, folder, counts)

    check()
    return counts


def _check(seed: int, folder: Path, counts: Counter[str]) -> None:
    from tvm import relax

    from passfit.frontend.canonicalise import import_model
    from passfit.frontend.relax.to_relax import to_relax
    from passfit.passes.graph.rules.book import RULES
    from passfit.passes.graph.rules.rule import apply_rules

    from .interpret import interpret
    from .random_graphs import RandomGraph

    random = Random(seed)
    model = RandomGraph(random).model()
    module = to_relax(import_model(save(model, folder)))
    x = (
        np.random.default_rng(seed)
        .standard_normal([int(e) for e in module["main"].params[0].ty.shape])
        .astype("float32")
    )
    expected = run_onnx(model, {"x": x})
    _agree(interpret(module, [x]), expected)
    rules = [rule() for rule in RULES]
    random.shuffle(rules)
    changed = apply_rules(module, rules, lambda rule, count: counts.update({rule.name: count}))
    relax.analysis.well_formed(changed)
    _agree(interpret(changed, [x]), expected)
    assert apply_rules(changed, rules).same_as(changed), "the rules have come to an end"


def _agree(got: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for one, other in zip(got, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)


def test_any_order_keeps_the_results_and_ends(fired: Counter[str]):
    assert fired


def test_every_rule_is_met(fired: Counter[str]):
    from passfit.passes.graph.rules.book import RULES

    assert {rule.name for rule in RULES} - set(fired) == set()
