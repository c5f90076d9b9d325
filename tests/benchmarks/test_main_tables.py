"""The runs behind the main tables: failures are rows, rows are measured once, clocks are sound."""

from __future__ import annotations

import json
import signal
import sys

import numpy as np
import pytest


@pytest.fixture
def main_tables(scripts, monkeypatch, tmp_path):
    import head
    import main_tables

    monkeypatch.setattr(head, "RAW", tmp_path / "raw")
    monkeypatch.setattr(main_tables, "RESULTS", tmp_path)
    return main_tables


@pytest.fixture
def broken(main_tables, tmp_path):
    """Make a model whose file is not a model."""
    from models import Model

    (tmp_path / "broken.onnx").write_bytes(b"PNG")
    return Model("broken", str(tmp_path / "broken.onnx"))


def run(main_tables, monkeypatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["main_tables.py", *arguments])
    main_tables.main()


def test_a_model_that_is_refused_is_a_row(main_tables, broken):
    found = main_tables.measure(broken, 60)
    assert "not an ONNX model" in found["failed"] and found["compile"]["wall"] > 0


def test_a_model_that_is_not_there_is_a_row(main_tables, tmp_path):
    from models import Model

    assert "nothing.onnx" in main_tables.measure(Model("nothing", str(tmp_path / "nothing.onnx")), 60)["failed"]


def test_a_run_over_the_limit_is_ended(main_tables, tmp_path):
    failed, spent = main_tables.run_passfit(["--help"], tmp_path, 0.0)
    assert failed == "not done in 0 s" and spent["wall"] < main_tables.PATIENCE


def test_an_interrupt_ends_the_run(main_tables, monkeypatch, tmp_path):
    def interrupted(pid, limit):
        raise KeyboardInterrupt

    monkeypatch.setattr(main_tables, "_wait", interrupted)
    started = []
    popen = main_tables.subprocess.Popen
    monkeypatch.setattr(main_tables.subprocess, "Popen", lambda *a, **k: started.append(popen(*a, **k)) or started[0])
    with pytest.raises(KeyboardInterrupt):
        main_tables.run_passfit(["--help"], tmp_path, 60.0)
    assert started[0].wait(10) == -signal.SIGKILL


def test_rows_are_measured_once_and_tables_written(main_tables, broken, monkeypatch, tmp_path):
    measured = []
    monkeypatch.setattr(main_tables, "models", lambda: [broken])
    monkeypatch.setattr(
        main_tables, "measure", lambda model, limit: measured.append(model) or {"failed": f"after {limit:g} s"}
    )
    run(main_tables, monkeypatch, "--limit", "7")
    run(main_tables, monkeypatch)
    assert measured == [broken]
    for name in main_tables.TABLES:
        text = (tmp_path / f"{name}.md").read_text(encoding="utf-8")
        assert "| broken | failed: after 7 s |" in text and "* commit: " in text
    run(main_tables, monkeypatch, "--again")
    assert len(measured) == 2


def test_tables_of_one_model_are_printed_not_written(main_tables, broken, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(main_tables, "models", lambda: [broken])
    monkeypatch.setattr(main_tables, "measure", lambda model, limit: {"failed": "for a reason"})
    run(main_tables, monkeypatch, "--model", "broken")
    assert "| broken | failed: for a reason |" in capsys.readouterr().out
    assert not list(tmp_path.glob("*.md"))
    run(main_tables, monkeypatch, "--tables")
    assert len(list(tmp_path.glob("*.md"))) == len(main_tables.TABLES)
    with pytest.raises(SystemExit):
        run(main_tables, monkeypatch, "--model", "brokn")


def test_small_models_come_first(main_tables, broken, tmp_path):
    from models import Model

    (tmp_path / "large.onnx").write_bytes(b"12345")
    large = Model("large", str(tmp_path / "large.onnx"))
    assert main_tables.small_first([large, broken]) == [broken, large]


def test_turns_alternate_and_all_count(scripts, monkeypatch):
    import timing

    monkeypatch.setattr(timing, "SECONDS", 0.0)
    calls = []
    found = timing.turn_by_turn({name: lambda name=name: calls.append(name) for name in "ab"})
    assert {name: len(turns) for name, turns in found.items()} == {"a": timing.TURNS, "b": timing.TURNS}
    turn = ["a"] * timing.LEAST + ["b"] * timing.LEAST
    assert calls == ["a", "b", *turn * timing.TURNS]


def test_inputs_are_the_same_every_time_and_valid(scripts):
    from timing import made

    one, two = made("x", (2, 3), "float32"), made("x", (2, 3), "float32")
    assert np.array_equal(one, two) and one.dtype == np.float32 and one.std() > 0
    assert not np.array_equal(one, made("y", (2, 3), "float32"))
    assert made("i", (), "int64").shape == () and not made("i", (4,), "int64").any()


@pytest.mark.tvm
@pytest.mark.slow
@pytest.mark.nightly
def test_a_small_network_is_compiled_timed_and_tabled(main_tables, save_tiny_cnn, tmp_path):
    from models import Model

    model = Model("tiny", str(save_tiny_cnn(tmp_path / "tiny.onnx")))
    row = json.loads(json.dumps(main_tables.measure(model, 600)))
    assert "failed" not in row and set(row["latency"]) - {"wide"} == {"shipped", "imported", "passfit"}
    for table in main_tables.TABLES.values():
        assert "| tiny | failed" not in table({model: row}, [])
