"""Laws of the knowledge file."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passfit.errors import ConfigError
from passfit.passes.sequence.catalogue import CATALOGUE_VERSION
from passfit.search.knowledge import load_knowledge
from passfit.search.knowledge.family import FAMILIES
from passfit.search.knowledge.record import KnownSequence
from passfit.search.knowledge.store import SCHEMA, SHIPPED, merge, read_records, write_records

from .records import records

LISTS = st.lists(records(), max_size=3)


@given(LISTS)
def test_what_is_written_is_read_back(tmp_path_factory, some):
    file = tmp_path_factory.mktemp("knowledge") / "knowledge.json"
    write_records(some, file)
    assert read_records(file) == merge((), some)
    before = file.read_bytes()
    write_records(read_records(file), file)
    assert file.read_bytes() == before


@given(LISTS, LISTS)
def test_learning_again_changes_nothing(known, learnt):
    once = merge(known, learnt)
    assert merge(once, learnt) == once
    assert len({record.key for record in once}) == len(once)
    assert {record.key for record in once} == {record.key for record in (*known, *learnt)}


@given(st.lists(records(), max_size=3, unique_by=lambda record: record.key), st.data())
def test_the_order_of_learning_does_not_matter(some, data):
    assert merge((), some) == merge((), data.draw(st.permutations(some)))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[]", "content"),
        ("{}", "schema is missing"),
        (json.dumps({"schema": SCHEMA, "catalogue": CATALOGUE_VERSION}), "models is missing"),
        (json.dumps({"schema": SCHEMA + 1, "catalogue": CATALOGUE_VERSION, "models": []}), "schema"),
        (json.dumps({"schema": SCHEMA, "catalogue": "another", "models": []}), "catalogue another"),
        (json.dumps({"schema": SCHEMA, "catalogue": CATALOGUE_VERSION, "models": [{"model": "m"}]}), "missing"),
        (
            json.dumps(
                {
                    "schema": SCHEMA,
                    "catalogue": CATALOGUE_VERSION,
                    "models": [{"model": "m", "digest": "0", "target": "t", "tails": [], "outcomes": [], "states": []}],
                }
            ),
            "'m' is broken",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_by_its_name(tmp_path, text, reason):
    file = tmp_path / "knowledge.json"
    file.write_text(text)
    with pytest.raises(ConfigError, match=reason) as refused:
        load_knowledge(file)
    assert str(file) in str(refused.value) and "passfit learn" in str(refused.value)


@given(records(), st.sampled_from(["no-such-pass", "fuse-operators{over=everything}", "legalize", "order", ""]))
def test_a_record_of_passes_that_cannot_stand_there_is_refused(tmp_path_factory, record, spec):
    file = tmp_path_factory.mktemp("knowledge") / "knowledge.json"
    broken = (
        replace(record, states=(replace(record.states[0], edges={spec: 0}), *record.states[1:])),
        replace(record, passes=(spec,)),
        replace(record, refined=KnownSequence((spec,), record.tails[0])),
    )
    for each in broken:
        write_records([each], file)
        with pytest.raises(ConfigError, match="is broken"):
            read_records(file)


@given(records())
def test_a_record_of_before_families_were_known_is_read(tmp_path_factory, record):
    file = tmp_path_factory.mktemp("knowledge") / "knowledge.json"
    write_records([record], file)
    older = json.loads(file.read_text())
    for name in ("family", "passes", "refined"):
        del older["models"][0][name]
    file.write_text(json.dumps(older))
    assert read_records(file) == (record,)


def test_what_ships_knows_the_family_and_the_refined_best_of_every_model():
    for record in read_records(SHIPPED):
        assert record.family in FAMILIES and record.passes and record.refined is not None, record.model


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        load_knowledge(tmp_path / "nothing.json")


def test_the_shipped_file_is_small_sorted_and_of_this_catalogue():
    shipped = read_records(SHIPPED)
    assert len(shipped) >= 20 and SHIPPED.stat().st_size < 300 * 1024
    assert shipped == merge((), shipped)
    assert "/" not in SHIPPED.read_text(encoding="utf-8")


@given(LISTS)
def test_a_model_repo_extends_what_ships(tmp_path_factory, some):
    file = tmp_path_factory.mktemp("knowledge") / "knowledge.json"
    write_records(some, file)
    keys = {record.key for record in load_knowledge(file).records}
    assert keys == {record.key for record in (*read_records(SHIPPED), *some)}
