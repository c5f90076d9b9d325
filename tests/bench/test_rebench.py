"""Test the comparison of strategies on a folder: bad graphs are listed, and better strategies reported."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from passfit.bench import rebench as bench
from passfit.bench.rebench import BenchGraph, FolderComparison, Found, Refused
from passfit.bench.rebench_table import as_json, markdown


def graph(ours: int = 100, theirs: int = 120, closed: bool = True) -> BenchGraph:
    found = [
        Found(strategy, objective, 0, ram, ram, 1, closed, 0.1, ())
        for strategy, ram in (("orchestrated", ours), ("greedy", theirs))
        for objective in ("ram", "sum")
    ]
    return BenchGraph("g", 200, 90, 150, 150, tuple(found), (), ours, {})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of one good graph and three that fail: not ONNX, an error of TVM, results that differ."""
    tvm = pytest.importorskip("tvm")
    failures = {
        "bad": bench.ModelError("'bad.onnx' is no ONNX model.", "Give another one."),
        "tvm": tvm.error.InternalError("tuple index\nout of range"),
        "differs": bench.NumericError("The outputs differ.", "Report it."),
    }

    def compared(file, *_: object) -> BenchGraph:
        if file.stem in failures:
            raise failures[file.stem]
        return graph()

    monkeypatch.setattr(bench, "_graph", compared)
    for name in ("good", *failures):
        (tmp_path / f"{name}.onnx").touch()
    return tmp_path


@pytest.mark.tvm
def test_a_graph_that_fails_is_a_row_with_the_reason(folder):
    pytest.importorskip("tvm")
    found = bench.rebench(folder, SimpleNamespace())
    assert [each.name for each in found.graphs] == ["g"]
    assert found.refused == (
        Refused("bad", "'bad.onnx' is no ONNX model."),
        Refused("differs", "The outputs differ."),
        Refused("tvm", "InternalError: out of range"),
    )


@pytest.mark.tvm
def test_a_bug_is_no_row(folder, monkeypatch):
    def broken(*_: object) -> BenchGraph:
        raise IndexError("tuple index out of range")

    monkeypatch.setattr(bench, "_graph", broken)
    with pytest.raises(IndexError):
        bench.rebench(folder, SimpleNamespace())


def test_the_report_says_over_how_many_graphs_and_which_are_not_there():
    report = markdown(FolderComparison((graph(),), (Refused("bad", "a | b"),)), "command")
    assert "over 1 graphs" in report and "| bad | a \\| b |" in report
    data = as_json(FolderComparison((graph(),), (Refused("bad", "why"),)))
    assert json.loads(json.dumps(data))["refused"] == [{"name": "bad", "reason": "why"}]


def test_a_report_without_graphs_has_the_reasons():
    report = markdown(FolderComparison((), (Refused("bad", "why"),)), "command")
    assert "| bad | why |" in report and "0 graphs" in report


def test_a_better_strategy_is_told_with_the_claim_it_breaks():
    assert "another strategy did better: none" in markdown(FolderComparison((graph(),)), "command")
    beaten = markdown(FolderComparison((graph(theirs=99),)), "command")
    assert "g (ram, greedy: 1 B, though closed)" in beaten
    assert "g (ram, greedy: 1 B)" in markdown(FolderComparison((graph(theirs=99, closed=False),)), "command")


def test_a_sum_below_the_bound_fails_the_report():
    assert "FAILED: below the bound on the sum: g" in markdown(
        FolderComparison((replace(graph(), ideal=101),)), "command"
    )
    assert "FAILED" not in markdown(FolderComparison((graph(),)), "command")
