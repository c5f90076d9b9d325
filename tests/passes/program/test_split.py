"""`split-rows`, `split-channels`, `cut-sums`, `rematerialise`: specs, levels and effect on steps."""

import pytest

from passfit.errors import SequenceError
from passfit.memory.streaming.merge_region import estimate_region
from passfit.passes.sequence.catalogue import parse_spec
from passfit.passes.sequence.sequence import Sequence

from ...memory.rowwise import RowBuilder
from ...strategies import chain


@pytest.mark.parametrize(
    "spec",
    [
        "split-rows{steps=0-3}", "split-rows{steps=2-2,axis=3,rows=8}", "split-channels{steps=1-12}",
        "split-channels{steps=0-1,channels=4}", "rematerialise{steps=3,before=7}", "rematerialise{steps=0+2,before=9}",
        "cut-sums", "split-rows{steps=3.0-3.2}", "split-channels{steps=1.4.0-1.4.1,channels=2}", "rematerialise{steps=3.0+3.1,before=4}",
    ],
)  # fmt: skip
def test_specs_round_trip(spec):
    assert parse_spec(spec).spec == spec


@pytest.mark.parametrize(
    "spec, said",
    [
        ("split-rows", "steps"),
        ("split-rows{steps=3}", "steps is '3'"),
        ("split-rows{steps=3-1}", "steps is '3-1'"),
        ("split-rows{steps=1-x}", "steps is '1-x'"),
        ("split-rows{steps=3.0-4.2}", "steps is '3.0-4.2', but a pass takes steps of one program"),
        ("split-rows{steps=3.0-2}", "steps is '3.0-2', but a pass takes steps of one program"),
        ("split-rows{steps=3.-3.2}", "steps is '3.-3.2'"),
        ("split-rows{steps=0-1,rows=two}", "rows is 'two', not a whole number"),
        ("split-rows{steps=0-1,channels=2}", "has no option 'channels'"),
        ("split-channels{steps=0-1,axis=2}", "has no option 'axis'"),
        ("rematerialise{steps=1}", "before"),
        ("rematerialise{steps=1-2,before=4}", "steps is '1-2'"),
        ("cut-sums{steps=1}", "has no option 'steps'"),
    ],
)
def test_bad_options_are_refused_with_what_is_wrong(spec, said):
    with pytest.raises(SequenceError) as refusal:
        parse_spec(spec)
    assert said in str(refusal.value)


@pytest.mark.parametrize(
    "specs, wrong",
    [
        (["split-rows{steps=0-1}", "legalize"], "split-rows{steps=0-1}"),
        (["legalize", "share", "split-rows{steps=0-1}"], "split-rows{steps=0-1}"),
        (["legalize", "share", "cut-sums"], "cut-sums"),
        (["legalize", "share", "rematerialise{steps=0,before=2}"], "rematerialise{steps=0,before=2}"),
        (["legalize", "split-channels{steps=0-1}", "fuse-operators"], "fuse-operators"),
    ],
)
def test_a_split_in_the_wrong_place_is_named(specs, wrong):
    with pytest.raises(SequenceError) as refusal:
        Sequence.parse(specs)
    assert f"'{wrong}' works on the" in str(refusal.value)


def test_splits_stand_between_kernels_and_sharing():
    specs = ("legalize", "fuse-operators", "cut-sums", "order", "rematerialise{steps=0,before=3}",
             "split-channels{steps=4-5}", "split-rows{steps=0-2}", "share", "order")  # fmt: skip
    assert Sequence.parse(specs).specs == specs and not Sequence.parse(specs).lossy


@pytest.mark.parametrize(
    "spec",
    [
        "split-rows{steps=0-3,axis=0}",  # there are three steps
        "split-rows{steps=0-2,axis=0,rows=13}",  # there are twelve rows
        "split-rows{steps=0-2,axis=0,rows=0}",
        "split-rows{steps=0-2}",  # there is no such axis
        "split-rows{steps=0-2,axis=7}",
    ],
)
def test_a_split_that_does_not_fit_says_so(spec):
    builder = RowBuilder()
    last = builder.tensor(12, 8)
    for _ in range(3):
        last = builder.window(last, size=3, pad=1)
    program, splits = builder.program()
    assert parse_spec("split-rows{steps=0-2,axis=0,rows=4}").region(program, splits).stages[0].group == 4
    with pytest.raises(SequenceError, match="does not fit this program of 3 steps"):
        parse_spec(spec).region(program, splits)


def test_steps_that_cannot_be_run_again_say_so():
    for spec in ("rematerialise{steps=2,before=1}", "rematerialise{steps=0,before=3}"):
        with pytest.raises(SequenceError, match="does not fit"):
            parse_spec(spec).rearrange(chain(8, 8, 8, 8))


def test_steps_before_and_after():
    """Two convolutions and a pooling: what is read, written and held, by name."""
    builder = RowBuilder()
    last = builder.tensor(12, 8)
    for options in ({"size": 3, "pad": 1}, {"size": 3, "pad": 1}, {"size": 2, "stride": 2}):
        last = builder.window(last, **options)
    program, splits = builder.program()
    found = parse_spec("split-rows{steps=0-2,axis=0,rows=2}").region(program, splits)
    after, _ = estimate_region(program, found)

    def described(program):
        names = [buffer.name for buffer in program.buffers]
        return [
            f"{step.kernel}: {' '.join(names[t] for t in step.reads)} -> "
            + " ".join(f"{names[t]}{list(program.tensors[t].shape)}" for t in step.writes)
            for step in program.steps
        ]

    assert described(program) == ["k0: b0 -> b1[12, 8]", "k1: b1 -> b2[12, 8]", "k2: b2 -> b3[6, 8]"]
    assert described(after) == ["streamed_k0: b0 -> b3[6, 8] workspace of streamed_k0[48] workspace of streamed_k0[32]"]
