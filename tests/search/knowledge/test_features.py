"""Laws of the features of a graph."""

from dataclasses import replace
from math import log1p

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passfit.search.knowledge.features import FEATURES, KINDS, Operation, features


@st.composite
def graphs(draw):
    """Inputs, operations that read what was made before them, outputs."""
    inputs = draw(st.lists(st.integers(1, 1000), min_size=1, max_size=3))
    operations = []
    for number in range(draw(st.integers(0, 6))):
        reads = draw(st.lists(st.integers(0, len(inputs) + number - 1), max_size=3))
        operations.append(Operation(draw(st.sampled_from(KINDS)), tuple(reads), draw(st.integers(1, 1000))))
    return inputs, operations, [len(inputs) + len(operations) - 1]


def named(graph, weights=0):
    return dict(zip(FEATURES, features(*graph, weights), strict=True))


def test_a_chain_by_hand():
    # 100 ─conv─► 200 ─relu─► 200 ─pool─► 50
    chain = [Operation("convolution", (0,), 200), Operation("element-wise", (1,), 200), Operation("pool", (2,), 50)]
    found = named(([100], chain, [3]), weights=36)
    for name, number in {"operations": 3, "bytes": 550, "weights": 36, "peak": 400, "floor": 400}.items():
        assert found[name] == pytest.approx(log1p(number), abs=1e-3)
    assert found["shared"] == 0
    assert found["count:pool"] == pytest.approx(log1p(1), abs=1e-3) and found["count:concat"] == 0
    assert found["bytes:convolution"] == pytest.approx(200 / 550, abs=1e-3)
    assert [kind for kind in KINDS if found[f"floor:{kind}"]] == ["element-wise"]


def test_a_value_that_is_read_twice_is_shared_and_lives_on():
    arm = Operation("element-wise", (0,), 100)
    fork = [arm, arm, Operation("concat", (1, 2), 200)]
    found = named(([100], fork, [3]))
    assert found["shared"] == pytest.approx(100 / 500, abs=1e-3)
    assert found["peak"] == pytest.approx(log1p(400), abs=1e-3)


@given(graphs())
def test_no_order_needs_less_than_its_largest_operation_and_none_more_than_everything(graph):
    found = named(graph)
    assert found["floor"] <= found["peak"] <= found["bytes"] or not graph[1]
    assert sum(found[f"bytes:{kind}"] for kind in KINDS) <= 1.01


@given(graphs(), st.integers(0, 10**9))
def test_weights_change_nothing_but_their_own_feature(graph, weights):
    assert named(graph) | {"weights": None} == named(graph, weights) | {"weights": None}


@given(graphs())
def test_a_result_that_nobody_reads_only_adds(graph):
    inputs, operations, outputs = graph
    more = [*operations, Operation("other", (0,), 10)]
    before, after = named((inputs, operations, outputs)), named((inputs, more, outputs))
    assert all(after[name] >= before[name] for name in ("operations", "bytes", "peak", "floor", "count:other"))


@given(graphs())
def test_reading_a_value_twice_in_one_operation_counts_once(graph):
    inputs, operations, outputs = graph
    doubled = [replace(each, reads=each.reads * 2) for each in operations]
    assert features(inputs, operations, outputs, 0) == features(inputs, doubled, outputs, 0)
