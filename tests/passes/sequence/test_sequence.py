from __future__ import annotations

import json
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passfit.errors import PassfitError, SequenceError
from passfit.passes.base import Level, ModulePass, Pass
from passfit.passes.program.layout import Layout
from passfit.passes.sequence.catalogue import CATALOGUE, CATALOGUE_VERSION
from passfit.passes.sequence.sequence import TVM_DEFAULT, Sequence, read_sequence, write_sequence

from .test_catalogue import passes

_GRAPH = st.lists(passes(Level.GRAPH), max_size=4)
_KERNELS = st.lists(passes(Level.KERNELS), max_size=3)
_PROGRAM = st.lists(passes(Level.PROGRAM), max_size=2)
_LEGALIZE = st.just([CATALOGUE["legalize"]()])
well_ordered = st.tuples(_GRAPH, _LEGALIZE, _KERNELS, _PROGRAM).map(lambda parts: tuple(chain(*parts)))


@given(well_ordered)
def test_passes_in_the_order_of_their_levels_are_a_sequence(chosen: tuple[Pass, ...]):
    specs = [each.spec for each in chosen]
    sequence = Sequence.parse(specs)
    assert sequence.passes == chosen and list(sequence.specs) == specs
    assert sequence.lossy == any(each.lossy for each in chosen)


@given(st.lists(passes(), max_size=6))
def test_whatever_parses_never_goes_back_to_a_lower_level(chosen: list[Pass]):
    try:
        sequence = Sequence.parse(each.spec for each in chosen)
    except SequenceError:
        return
    legalize = [index for index, each in enumerate(sequence.passes) if each.name == "legalize"]
    assert len(legalize) == 1
    levels = [min(each.levels) for each in sequence.passes]
    assert levels == sorted(levels)
    assert levels.count(Level.GRAPH) == legalize[0] + 1


@given(well_ordered, well_ordered)
def test_two_graphs_ways_down_are_no_sequence(one: tuple[Pass, ...], other: tuple[Pass, ...]):
    with pytest.raises(SequenceError):
        Sequence.parse(each.spec for each in (*one, *other))


@pytest.mark.parametrize(
    "specs, said",
    [
        ([], "no `legalize`"),
        (["order"], "'order' works on the lowered or program level, but stands at the graph level"),
        (
            ["fuse-operators", "legalize"],
            "'fuse-operators' works on the kernels level, but stands at the graph level",
        ),
        (["legalize", "canonicalize-bindings"], "'canonicalize-bindings' works on the graph"),
        (["legalize", "legalize"], "'legalize' works on the graph level, but stands at the kernels level"),
        (
            ["legalize", "order", "fuse-operators"],
            "'fuse-operators' works on the kernels level, but stands at the lowered level",
        ),
    ],
)
def test_a_pass_in_the_wrong_place_is_named(specs: list[str], said: str):
    with pytest.raises(SequenceError) as refusal:
        Sequence.parse(specs)
    assert said in str(refusal.value)


@given(well_ordered)
def test_there_is_a_place_for_a_layout_in_every_sequence(chosen: tuple[Pass, ...]):
    before, after = Sequence(chosen).around_layout()
    assert (*before, *after) == chosen
    specs = [each.spec for each in (*before, Layout("0"), *after)]
    assert list(Sequence.parse(specs).specs) == specs


def test_the_default_of_tvm_is_a_sequence():
    assert all(isinstance(each, ModulePass) for each in Sequence.parse(TVM_DEFAULT).passes)


@given(chosen=well_ordered)
def test_a_sequence_survives_its_file(tmp_path_factory: pytest.TempPathFactory, chosen: tuple[Pass, ...]):
    path = tmp_path_factory.mktemp("sequence") / "sequence.json"
    write_sequence(Sequence(chosen), path)
    first = path.read_bytes()
    assert read_sequence(path) == Sequence(chosen)
    write_sequence(read_sequence(path), path)
    assert path.read_bytes() == first
    assert json.loads(first) == {
        "passes": [each.spec for each in chosen], "exact": not any(each.lossy for each in chosen), "catalogue": CATALOGUE_VERSION
    }  # fmt: skip
    assert [file.name for file in path.parent.iterdir()] == ["sequence.json"]


@given(text=st.one_of(st.text(max_size=20), st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["passes", "exact"]), inner),
).map(json.dumps)))  # fmt: skip
def test_a_malformed_file_is_refused_by_name(tmp_path_factory: pytest.TempPathFactory, text: str):
    path = tmp_path_factory.mktemp("sequence") / "sequence.json"
    path.write_bytes(text.encode("utf-8", "replace"))
    with pytest.raises(PassfitError) as refusal:
        read_sequence(path)
    assert refusal.value.hint


@pytest.mark.parametrize(
    "spec, what",
    [
        ("split-rows{steps=0-1,held=2}", "The pass 'split-rows' has no option 'held'."),
        ("fuse-by-mapping{held=1}", "The pass 'fuse-by-mapping' has no option 'held'."),
        ("fuse-everything", "There is no pass 'fuse-everything'."),
    ],
)
def test_a_file_of_another_version_says_to_search_again(tmp_path: Path, spec: str, what: str):
    (tmp_path / "old.json").write_text(json.dumps({"passes": ["legalize", spec]}))
    with pytest.raises(SequenceError) as refusal:
        read_sequence(tmp_path / "old.json")
    assert (
        refusal.value.what == f"'{tmp_path / 'old.json'}': {what}"
        and "search again: leave --sequence out" in refusal.value.hint
    )


def test_a_file_that_is_not_there_is_refused_by_name(tmp_path: Path):
    with pytest.raises(PassfitError, match="nothing.json"):
        read_sequence(tmp_path / "nothing.json")
