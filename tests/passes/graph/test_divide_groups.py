"""Check the division into single-result parts by the reads, needs and cost of each part."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from passfit.passes.graph.divide_groups import Computations, parts


@st.composite
def graphs(draw: st.DrawFn) -> Computations:
    """Computations of which the last is read by others, as are some more."""
    count = draw(st.integers(1, 40))
    reads = [tuple(draw(st.lists(st.integers(max(0, n - 6), n - 1), max_size=3))) if n else () for n in range(count)]
    nbytes = tuple(draw(st.lists(st.integers(1, 5), min_size=count, max_size=count)))
    return Computations(
        tuple(reads), nbytes, frozenset({count - 1, *draw(st.sets(st.integers(0, count - 1), max_size=2))})
    )


def _tree(graph: Computations, values: Sequence[int], kept: Collection[int]) -> int:
    """Operations, one for each value, if only those of `kept` are computed once."""
    sizes: dict[int, int] = {}
    total = 0
    for value in values:
        size = 1 + sum(sizes.get(each, 0) for each in graph.reads[value])
        sizes[value], total = (0, total + size) if value in kept else (size, total)
    return total


def _needed(graph: Computations) -> set[int]:
    found = set(graph.outputs)
    for value in reversed(range(len(graph.reads))):
        if value in found:
            found.update(graph.reads[value])
    return found


def _divided(graph: Computations, limit: int) -> list[list[int]]:
    return parts(graph, lambda values, kept: _tree(graph, values, kept), limit)


@given(graphs(), st.integers(1, 30))
def test_every_part_reads_results_of_earlier_ones_only(graph: Computations, limit: int):
    made: set[int] = set()
    for values in _divided(graph, limit):
        outside = {each for value in values for each in graph.reads[value]} - set(values)
        assert outside <= made and values == sorted(values)
        made.add(values[-1])
    assert graph.outputs <= made


@given(graphs(), st.integers(1, 30))
def test_nothing_that_is_needed_is_left_out_or_made_twice(graph: Computations, limit: int):
    found = [value for values in _divided(graph, limit) for value in values]
    assert sorted(found) == sorted(_needed(graph))


@given(graphs(), st.integers(1, 30))
def test_a_part_of_several_values_is_within_the_limit(graph: Computations, limit: int):
    for values in _divided(graph, limit):
        assert len(values) == 1 or _tree(graph, values, {values[-1]}) <= limit


@given(graphs())
def test_what_is_within_the_limit_is_cut_only_where_results_are(graph: Computations):
    everything = range(len(graph.reads))
    graph = replace(graph, outputs=graph.outputs | set(everything) - {each for reads in graph.reads for each in reads})
    found = _divided(graph, max(1, _tree(graph, everything, graph.outputs)))
    results = {values[-1] for values in found}
    shared = results - graph.outputs
    assert graph.outputs <= results
    assert all(sum(each in graph.reads[value] for value in everything) > 1 for each in shared)
    assert len(graph.outputs) > 1 or len(found) == 1


def test_a_chain_that_reads_each_value_twice_is_cut_where_one_value_crosses():
    # x · f(x), again and again: two values cross in the middle of a step, one between two
    reads = tuple((n - 1,) if n % 2 else (n - 1, n - 2) if n else () for n in range(200))
    graph = Computations(reads, (1,) * 200, frozenset({199}))
    found = _divided(graph, 100)
    assert all(values[-1] % 2 == 0 for values in found[:-1]) and len(found) < 40
