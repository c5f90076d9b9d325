"""Test tuning.json: it is read back as written; other targets, TVMs and formats are refused in one sentence."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from passfit.errors import ConfigError
from passfit.passes.program.layout import Layout
from passfit.targets import get_target
from passfit.tuning.database import (
    RULES,
    Database,
    LayoutResult,
    LibraryComparison,
    TunedKernel,
    device_of,
    empty,
    read_database,
    read_tuning,
    write_database,
)

HOST = get_target("x86-64")
FAST = TunedKernel("b" * 32, ["float32 1x8"], 2, 90, 40, "lane-sums{lanes=8}", {"rules": 3})
KEPT = TunedKernel("a" * 32, ["float32 1x8", "int64"], 1, 30, 30, RULES, note="why")
TRACE = TunedKernel(
    "c" * 32, ["float32 1x8"], 1, 30, 20, [[["GetLoops", [1, 0.25, None], "b0"]], []], {"meta-schedule": 8}
)

LAID = LayoutResult("layout{steps=0+3,program=0a}", 90, 80, 4, True, True)


def written(path: Path, *kernels: TunedKernel) -> Path:
    write_database(Database(HOST.name, device_of(HOST), kernels=kernels), path)
    return path


def test_what_is_written_is_read_back_in_one_layout(tmp_path: Path):
    one = written(tmp_path / "one.json", FAST, KEPT, TRACE)
    other = written(tmp_path / "other.json", TRACE, FAST, KEPT)
    assert one.read_bytes() == other.read_bytes()
    assert read_database(one, HOST).kernels == (KEPT, FAST, TRACE)


def test_only_what_differs_from_the_rules_is_a_choice(tmp_path: Path):
    tuning = read_tuning(written(tmp_path / "t.json", FAST, KEPT, TRACE), HOST)
    assert tuning.schedules.choices == {FAST.fingerprint: FAST.choice, TRACE.fingerprint: json.dumps(TRACE.choice)}
    assert tuning and len(tuning.digest) == 64
    assert not read_tuning(written(tmp_path / "none.json", KEPT), HOST)


@pytest.mark.parametrize("taken", [True, False])
def test_choices_count_where_the_whole_library_is_better(tmp_path: Path, taken: bool):
    database = Database(HOST.name, device_of(HOST), kernels=(FAST,), whole=LibraryComparison("ms", 2.0, 1.5, taken))
    write_database(database, tmp_path / "t.json")
    assert read_database(tmp_path / "t.json", HOST) == database
    assert bool(read_tuning(tmp_path / "t.json", HOST)) == taken


@pytest.mark.parametrize("taken", [True, False])
def test_a_layout_counts_where_it_is_taken(tmp_path: Path, taken: bool):
    laid = replace(LAID, taken=taken, whole=LibraryComparison("ms", 2.0, 1.5, taken))
    database = Database(HOST.name, device_of(HOST), layout=laid)
    write_database(database, tmp_path / "t.json")
    assert read_database(tmp_path / "t.json", HOST) == database
    found = read_tuning(tmp_path / "t.json", HOST)
    assert bool(found) == taken and (found.layout == Layout("0+3", "0a")) == taken


@pytest.mark.parametrize("name", ["x86-64", "rpi4", "visionfive2"])
def test_an_empty_one_is_valid_on_its_target_alone(tmp_path: Path, name: str):
    write_database(empty(get_target(name)), tmp_path / "e.json")
    assert not read_tuning(tmp_path / "e.json", get_target(name))
    with pytest.raises(ConfigError, match="is for the target"):
        read_database(tmp_path / "e.json", get_target("beaglebone"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": 3}, "format 3, not 4"),
        ({"tvm": "0.20.0"}, "tvm 0.20.0"),
        ({"device": {"cpu": "x86-64-v4"}}, "device"),
        ({"target": None}, "target null"),
        ({"kernels": 3}, "kernels"),
        ({"kernels": [{"fingerprint": "a"}]}, "kernels.0"),
        ({"kernels": [{**vars(FAST), "choice": 7}]}, "choice"),
        ({"kernels": [vars(FAST), vars(FAST)]}, "twice"),
        ({"layout": {**vars(LAID), "spec": "layout{steps=x}"}}, "not numbers"),
        ({"layout": {**vars(LAID), "spec": "order"}}, "'order' is not a layout"),
    ],
)
def test_what_is_of_something_else_is_refused(tmp_path: Path, change: dict, said: str):
    path = written(tmp_path / "t.json", FAST)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ConfigError, match=said) as refused:
        read_database(path, HOST)
    assert "passfit tune" in refused.value.hint


@pytest.mark.parametrize("content", ["", "no json", "[]", "{}", '{"format": 4}'])
def test_what_is_no_database_is_refused(tmp_path: Path, content: str):
    (tmp_path / "t.json").write_text(content)
    with pytest.raises(ConfigError, match="t.json"):
        read_database(tmp_path / "t.json", HOST)


def test_a_device_is_told_by_its_machine_too():
    assert device_of(HOST) != device_of(replace(HOST, cpu="x86-64-v2"))
    assert {"lanes", "registers"} <= device_of(HOST).keys()
