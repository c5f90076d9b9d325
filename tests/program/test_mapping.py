"""The table of mapping types, pair by pair."""

from __future__ import annotations

from itertools import product

import pytest

from passfit.program.mapping import Access, BlockAccesses, Fusion, KernelAccesses, MappingType, fusion_of, through

ONE, REORGANISE, SHUFFLE, SPREAD, MANY = MappingType
MAYBE = {(SPREAD, SPREAD), (REORGANISE, MANY), (SHUFFLE, MANY), (MANY, REORGANISE), (MANY, SHUFFLE), (MANY, SPREAD)}
PAIRS = list(product(MappingType, MappingType))
NEVER = {(SPREAD, MANY), (MANY, MANY)}


@pytest.mark.parametrize("producer, reader", PAIRS)
def test_each_pair_has_its_verdict(producer: MappingType, reader: MappingType):
    pair = producer, reader
    expected = Fusion.IF_PROFITABLE if pair in MAYBE else Fusion.NEVER if pair in NEVER else Fusion.ALWAYS
    assert fusion_of(producer, reader) is expected


@pytest.mark.parametrize("producer, reader", PAIRS)
def test_a_pair_is_as_complex_as_its_more_complex_part(producer: MappingType, reader: MappingType):
    blocks = [BlockAccesses((2,), 1, 4, 1, False, (Access(n, each, ()),)) for n, each in enumerate((producer, reader))]
    kernel = KernelAccesses(1, tuple(blocks))
    assert kernel.mappings == (kernel.mapping,)
    assert kernel.mapping in (producer, reader)
    assert kernel.mapping >= producer and kernel.mapping >= reader


@pytest.mark.parametrize("other", MappingType)
def test_one_to_one_fuses_with_anything(other: MappingType):
    assert fusion_of(ONE, other) is fusion_of(other, ONE) is Fusion.ALWAYS


def test_dims_are_traced_through_a_block_and_lose_the_axes_it_sums_over():
    inner = frozenset({0}), frozenset({1, 2}), frozenset()  # a source in a block of axes 0, 1 and the sum over 2
    outer = frozenset({1}), frozenset({0, 3})  # that block's result, of two dimensions, in its reader
    assert through(inner, outer) == (frozenset({1}), frozenset({0, 3}), frozenset())
