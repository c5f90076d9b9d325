"""The table of levers, on a small network, and on made-up results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

LEVERS = ["plain", "order", "in-place", "concat-inside", "order + both"]


@pytest.fixture
def results(monkeypatch, tmp_path) -> Path:
    """Where the modules of benchmarks/, importable as in its scripts, put their results."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    import memory_table

    monkeypatch.setattr(memory_table, "RESULTS", tmp_path)
    return tmp_path


@pytest.mark.tvm
def test_no_lever_makes_a_small_network_larger(results, save_tiny_cnn):
    from entries import Entry
    from memory import fill
    from memory_table import BASELINE, known_of, ratio

    entry = Entry("tiny", str(save_tiny_cnn(results / "tiny.onnx")))
    fill(entry, [BASELINE, "plain"])
    first = {column: found for column, found in known_of(entry).items() if column}
    fill(entry, LEVERS[1:])
    known = known_of(entry)
    assert {column: known[column] for column in first} == first, "what is known is not worked out again"
    plain = ratio(known, "plain")
    assert plain is not None
    for lever in LEVERS:
        assert known[lever]["bound"] <= known[lever]["arena"]
        assert ratio(known, lever, "bound") <= ratio(known, lever) <= plain


def test_a_model_that_cannot_be_imported_is_reported(results):
    from entries import Entry
    from memory import fill
    from memory_table import known_of, table

    (results / "empty.onnx").write_bytes(b"")
    entry = Entry("empty", str(results / "empty.onnx"))
    fill(entry, ["plain"])
    assert "is empty" in known_of(entry)["plain"]["failed"]
    assert "## Failed" in table([entry], ["tvm-default", "plain"])


def test_means_are_geometric_and_say_what_they_leave_out(results):
    from entries import Entry
    from memory_table import table

    sizes = {"arena": 0, "bound": 0, "reached": True, "proved": False, "seconds": 0}
    for name, ram in (("a", 25), ("b", 400), ("c", None)):
        found = {"tvm-default": {"ram": 100, "seconds": 0}}
        if ram is not None:
            found["plain"] = {"ram": ram, **sizes}
        (results / f"{name}.json").write_text(json.dumps(found))
    text = table([Entry("a", "a"), Entry("b"), Entry("c", "c", recurrent=True)], ["tvm-default", "plain"])
    assert "| **geometric mean, all** (3) | | **1.000** (of 2) | **1.000** (of 2) |" in text
    assert "| **geometric mean, zoo** (1) | | **4.000** | **4.000** |" in text
    assert "| plain | 2 | 2 | 0 | 1 | 0 | 1 |" in text
    assert "| c (recurrent) | 100 B |" in text
