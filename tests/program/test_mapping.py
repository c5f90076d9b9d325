"""The table of mapping types, pair by pair."""

from __future__ import annotations

from itertools import product

import pytest

from passfit.program.mapping import Fusion, MappingType, fused_type, fusion_of, through

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
    fused = fused_type(producer, reader)
    assert fused in (producer, reader)
    assert fused >= producer and fused >= reader
    assert fused is fused_type(reader, producer)


@pytest.mark.parametrize("other", MappingType)
def test_one_to_one_fuses_with_anything_and_changes_no_type(other: MappingType):
    assert fusion_of(ONE, other) is fusion_of(other, ONE) is Fusion.ALWAYS
    assert fused_type(ONE, other) is fused_type(other, ONE) is other


def test_dims_are_traced_through_a_block_and_lose_the_axes_it_sums_over():
    inner = frozenset({0}), frozenset({1, 2}), frozenset()  # a source in a block of axes 0, 1 and the sum over 2
    outer = frozenset({1}), frozenset({0, 3})  # that block's result, of two dimensions, in its reader
    assert through(inner, outer) == (frozenset({1}), frozenset({0, 3}), frozenset())
