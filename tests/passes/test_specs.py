"""Spec strings and sequences: pure, no TVM."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from passfit.errors import ConfigError, SequenceError
from passfit.passes.fold_constant import FoldConstant
from passfit.passes.fuse_operators import OVER, FuseOperators
from passfit.passes.order import ORDERS, Order
from passfit.passes.registry import CATALOGUE, parse_spec
from passfit.passes.sequence import TVM_DEFAULT, Sequence, read_sequence, write_sequence

PLAIN = st.sampled_from([kind() for kind in CATALOGUE.values()])
PASSES = st.one_of(
    PLAIN,
    st.builds(FuseOperators, depth=st.integers(1, 512), over=st.sampled_from(OVER)),
    st.builds(FoldConstant, grow=st.integers(0, 1)),
    st.builds(Order, by=st.sampled_from(ORDERS)),
)


@given(PASSES)
def test_a_spec_string_names_its_pass(each):
    assert parse_spec(each.spec) == each


@given(PLAIN)
def test_defaults_are_left_out(each):
    assert each.spec == each.name


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ("fuse-operator", "fuse-operators"),
        ("fuse-operators{dept=2}", "depth"),
        ("fuse-operators{depth=-2}", "whole number"),
        ("fuse-operators{over=everything}", "element-wise"),
        ("fuse-operators{depth=2", "not a pass spec"),
        ("order{by=size}", "greedy"),
        ("", "not a pass spec"),
        ("legalize{depth=2}", "no option 'depth'"),
    ],
)
def test_what_cannot_be_parsed_is_named(spec, word):
    with pytest.raises(SequenceError, match=word):
        parse_spec(spec)


def test_levels_go_one_way():
    assert Sequence.parse(["dead-code-elimination", *TVM_DEFAULT, "order{by=greedy}"]).specs[-1] == "order{by=greedy}"
    for specs in (
        ["legalize", "dead-code-elimination"],
        ["fold-constant", "legalize"],
        ["legalize", "legalize"],
        ["order", "legalize"],
        ["legalize", "order", "fuse-operators"],
        ["dead-code-elimination"],
        [],
    ):
        with pytest.raises(SequenceError):
            Sequence.parse(specs)


def test_a_sequence_survives_its_file(tmp_path):
    sequence = Sequence.parse([*TVM_DEFAULT, "order{by=beam}"])
    write_sequence(sequence, tmp_path / "sequence.json")
    assert read_sequence(tmp_path / "sequence.json") == sequence
    first = (tmp_path / "sequence.json").read_bytes()
    write_sequence(sequence, tmp_path / "sequence.json")
    assert (tmp_path / "sequence.json").read_bytes() == first


@pytest.mark.parametrize("text", ["", "{", "[]", '{"passes": "legalize"}', '{"passes": [1]}', "{}"])
def test_malformed_files_are_refused(tmp_path, text):
    (tmp_path / "sequence.json").write_text(text)
    with pytest.raises((ConfigError, SequenceError), match="sequence.json"):
        read_sequence(tmp_path / "sequence.json")


def test_every_pass_says_what_it_does():
    for name, kind in CATALOGUE.items():
        assert kind.name == name and kind.summary and kind.levels
