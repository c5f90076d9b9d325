from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passfit.errors import SequenceError
from passfit.passes.base import Level, ModulePass, Pass
from passfit.passes.graph.fuse_operators import OVER
from passfit.passes.graph.mapping.fuse_by_mapping import OBJECTIVES
from passfit.passes.graph.to_mixed_precision import ACCUMULATORS
from passfit.passes.program.order import ORDERS
from passfit.passes.sequence.catalogue import CATALOGUE, parse_spec

from ... import strategies  # noqa: F401  (the settings of hypothesis)

#: the values of the options that are words
WORDS = {
    "without": ("", "remove-identities"),
    "objective": OBJECTIVES, "over": OVER, "by": ORDERS, "sum": ACCUMULATORS, "keep": ("", "3", "1+12"), "program": ("", "0a1b"),
}  # fmt: skip
STEPS = {
    "split-rows": ("0-3", "2-2"), "split-channels": ("1-12",), "rematerialise": ("3", "0+12"), "layout": ("0", "3+12")
}  # fmt: skip


@st.composite
def passes(draw: st.DrawFn, level: Level | None = None) -> Pass:
    """Any pass with any options; at `level`, those that work there and stay there."""
    kinds = sorted(CATALOGUE.values(), key=lambda kind: kind.name)
    if level is not None:
        kinds = [kind for kind in kinds if kind.levels == {level} and kind().level_after(level) == level]
    kind = draw(st.sampled_from(kinds))
    known = WORDS | {"steps": STEPS.get(kind.name, ())}
    options = {
        field.name: draw(st.sampled_from(known[field.name]) if field.name in known else st.integers(0, 10**6))
        for field in fields(kind)
    }
    return kind(**options)


@given(passes())
def test_a_spec_names_its_pass(each: Pass):
    assert parse_spec(each.spec) == each
    assert parse_spec(f"  {each.spec}\n") == each


@given(passes(), passes())
def test_different_passes_have_different_specs(one: Pass, other: Pass):
    assert (one.spec == other.spec) == (one == other)


@pytest.mark.parametrize("kind", CATALOGUE.values(), ids=CATALOGUE)
def test_every_pass_is_described_and_can_be_made_without_options_but_for_steps(kind: type[Pass]):
    assert kind.name in STEPS or kind().spec == kind.name
    assert kind.summary and kind.levels
    assert issubclass(kind, ModulePass) == (min(kind.levels) < Level.LOWERED)


@given(st.text(max_size=30))
def test_any_text_is_a_spec_or_refused(text: str):
    try:
        parsed = parse_spec(text)
    except SequenceError as error:
        assert error.what and error.hint
    else:
        assert parsed.name in text


@pytest.mark.parametrize(
    "spec, said",
    [
        ("fuse-operator", "'fuse-operators'"),
        ("fold_constant", "not a pass spec"),
        ("split-rows", "steps is not given"),
        ("cannonicalize-bindings", "'canonicalize-bindings'"),
        ("zzz", "Known: adjust-matmul-order"),
        ("fuse-operators{dept=3}", "'depth'"),
        ("fuse-operators{depth}", "'depth'"),
        ("fuse-operators{depth=}", "not a whole number"),
        ("fuse-operators{depth=-1}", "not a whole number"),
        ("fuse-operators{depth=1.5}", "not a whole number"),
        ("fuse-operators{over=poolings}", "element-wise, pooling, reduction"),
        ("order{by=luck}", "given, depth-first, on-demand, greedy, beam, best"),
        ("legalize{a=1}", "no option 'a'"),
        ("fuse-operators{depth=1", "not a pass spec"),
        ("fuse-operators{depth=1}{depth=2}", "not a pass spec"),
        ("fuse-operators{{depth=1}}", "not a pass spec"),
        ("fuse-operators{depth=1,depth=2}", "twice"),
        ("fuse-operators{}", ""),
        ("", "not a pass spec"),
    ],
)
def test_what_is_wrong_is_named(spec: str, said: str):
    if not said:
        assert parse_spec(spec) == parse_spec("fuse-operators")
        return
    with pytest.raises(SequenceError) as refusal:
        parse_spec(spec)
    assert said in str(refusal.value)
