"""Random records of models, in place of explored ones."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from passfit.search.evaluate.candidates import TAILS, actions
from passfit.search.knowledge.features import FEATURES
from passfit.search.knowledge.record import BEYOND, KnownOutcome, KnownState, ModelRecord

SPECS = [each.spec for each in actions()]
TAIL_SPECS = tuple(tuple(each.spec for each in tail) for tail in TAILS)

_ratios = st.integers(1, 2000).map(lambda number: number / 1000)
# one draw for all of them: one for each took most of the time of these tests
_features = st.integers(0, 2**16).map(lambda seed: tuple(map(float, Random(seed).choices(range(21), k=len(FEATURES)))))


@st.composite
def records(draw: st.DrawFn, digests: st.SearchStrategy[str] = st.sampled_from("abcdef")) -> ModelRecord:
    """A record whose states are all reached, from state 0 or from one before them."""
    tails = TAIL_SPECS[: draw(st.integers(1, 3))]
    outcomes = (KnownOutcome(1.0, 1.0), *draw(st.lists(st.builds(KnownOutcome, _ratios, _ratios), max_size=4)))
    count = draw(st.integers(1, 4))
    edges: list[dict[str, int]] = [{} for _ in range(count)]
    for number in range(1, count):
        free = [(at, spec) for at in range(number) for spec in SPECS if spec not in edges[at]]
        at, spec = draw(st.sampled_from(free))
        edges[at][spec] = number
    if draw(st.booleans()):
        edges[-1].setdefault(SPECS[0], BEYOND)
    numbers = st.one_of(st.none(), st.integers(0, len(outcomes) - 1))
    cells = [[draw(numbers) for _ in tails] for _ in range(count)]
    cells[0][0] = 0
    states = tuple(KnownState(draw(_features), edge, tuple(row)) for edge, row in zip(edges, cells))
    digest = draw(digests)
    return ModelRecord(draw(st.sampled_from(["net", "ocr", "vad"])), digest, "x86-64", tails, outcomes, states)
