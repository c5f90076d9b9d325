"""The main tables, on made-up rows: means, failures, and README's rows."""

from __future__ import annotations

import pytest


def row(ram: int, ms: float = 1.0, flash: int | None = 200, extra: float = 0.0) -> dict:
    size = {"ram": ram, "flash": 100, "bound": ram, "proved": True, "kernels": 3}
    levers = [{"lever": lever, "arena": ram} for lever in ("given", "order", "share", "split", "repeat")]
    points = [{"ram": ram - 5, "cycles": 3e6 * ms}, {"ram": ram, "cycles": 2e6 * ms}]
    tradeoff = {"points": points, "chosen": 1}
    return {
        "compile": {"wall": 61.0 if ram > 100 else 9.0, "processor": 12.0, "others": None},
        "footprint": {
            "best": size,
            "baseline": {"ram": 100, "arena": 100, "flash": flash},
            "measured": {"ram": None, "max_rel_error": 1e-7},
        },
        "search": {"evaluations": 5, "closed": True, "extra_compute": extra, "levers": levers, "tradeoff": tradeoff},
        "latency": {"shipped": [4.0, 2.0], "imported": [3.0, 3.0], "passfit": [2 * ms, ms]},
    }


@pytest.fixture
def rows(scripts):
    from models import Model

    return {
        Model("a", "pypi:a"): row(25, 1.0),
        Model("b"): row(400, 4.0, flash=None),
        Model("c", "pypi:c", recurrent=True): {"failed": "not done in 900 s"},
        Model("d", "pypi:d"): row(50) | {"latency": {"failed": "the library | crashed"}},
    }


def cells(text: str, start: str) -> list[str]:
    (line,) = [line for line in text.split("## ")[0].split("\n") if line.startswith(f"| {start}")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_memory(rows):
    from tables import memory

    text = memory(rows, ["* head"])
    assert text.startswith("# Memory\n\n* head\n* models: 4, 1 of them failed\n")
    assert cells(text, "a ")[1:6] == ["25 B", "100 B", "0.250", "–", "1.0e-07"]
    assert cells(text, "**geometric mean, all**")[3] == "**0.794**"
    assert cells(text, "**geometric mean, all**")[9] == "**0.500** (of 2)"
    assert cells(text, "**geometric mean, zoo**")[3] == "**4.000**"
    assert cells(text, "a ")[12:] == ["20 B", "0.200", "1.50"]
    assert "Arena equal to the bound: 3 of 3 models." in text
    assert "| **geometric mean** (3) | **0.794** |" in text


def test_latency_is_beside_the_faster_session_of_onnx_runtime(rows):
    from tables import latency

    text = latency(rows, [])
    assert cells(text, "a ")[1:] == ["2.000", "1.000", "0.50", "–", "–", "2.00", "1.000"]
    assert cells(text, "b ")[3] == "2.00"
    assert "Spearman 1.000; off by more than 2 ×: 0 of 2" in text
    assert cells(text, "**geometric mean, all** (2)")[3] == "**1.00**"
    assert "| d | failed: the library \\| crashed |" in text


def test_latency_of_the_widest_vectors_is_beside_the_targets(rows):
    from tables import latency

    model = next(iter(rows))
    rows[model]["latency"]["wide"] = [0.75, 0.5]
    assert cells(latency(rows, []), "a ")[3:6] == ["0.50", "0.500", "0.25"]


def test_compile_time(rows):
    from tables import compile_time

    text = compile_time(rows, [])
    assert "2 of 3 models within 60 s." in text
    assert cells(text, "a ")[1:] == ["9.0", "12.0", "–", "5", "yes", "3"]


@pytest.mark.parametrize("name", ["memory", "latency", "compile_time"])
def test_a_failed_model_is_a_row_that_says_why(rows, name):
    import tables

    text = getattr(tables, name)(rows, [])
    assert cells(text, "c (recurrent)")[1] == "failed: not done in 900 s"
    widths = {
        len(line.split(" | ")) for line in text.split("## ")[0].split("\n") if line.startswith(("| a", "| b", "| c"))
    }
    assert len(widths) == 1
    nothing = getattr(tables, name)({}, [])
    assert "* models: 0, 0 of them failed" in nothing


def test_the_rows_of_the_readme_follow_memory(rows):
    from results_page import readme
    from tables import memory

    head = ["* commit: 0123456789ab, 2026-01-02", "* machine: Some CPU, 8 cores, x86-64-v3"]
    before = (
        "| x86-64, 2 cores, at fffffff (2025-01-01) | ram | ratio |\n| --- | --- |\n| a model (a) | 1 | 2 |\n"
        "| another (b) | – |\n\nOver all 9 models the geometric mean is 9.999. Words (a)."
    )
    after = readme(before, memory(rows, head))
    assert after == (
        "| x86-64, 8 cores, at 0123456 (2026-01-02) | ram | ratio |\n| --- | --- |\n"
        "| a model (a) | 25 B | 100 B | 0.250 | – | 1.0e-07 |\n| another (b) | 400 B | 100 B | 4.000 | – | 1.0e-07 |\n\n"
        "Over all 3 models the geometric mean is 0.794. Words (a)."
    )
    assert readme(after, memory(rows, head)) == after
    with pytest.raises(KeyError):
        readme("| a model (nobody) | 1 |", memory(rows, head))


def test_variants_are_beside_the_default_one(scripts):
    from models import Model
    from variants import VARIANTS, table

    turns = {"default": [2.0, 4.0], "whole": [1.0, 1.0], "two threads": [4.0, 4.0], "tuned": [2.0, 2.0]}
    row = {"latency": {**turns, "shipped": [4.0]}, "ram": dict.fromkeys(VARIANTS, 1024), "seconds": 9}
    text = table({Model("a"): row, Model("b"): {"failed": "tune: no time"}}, ["* head"])
    assert "| a | whole | 1.0 KiB | 1.000 | 2.00 | 0.25 |" in text
    assert "| a | tuned, 9 s |" in text and "| b | failed: tune: no time |" in text
    assert "| **geometric mean** (1) | two threads | | | **0.50** | |" in text


def test_the_head_takes_the_place_of_the_command_of_rebench(scripts):
    from head import head
    from rebench import with_head

    text = with_head("# Title\n\n`passfit bench rebench DIR`\n\n| a |\n\n* b\n", head())
    title, _, command, *_, table, _, line, _ = text.split("\n")
    assert (title, command, table, line) == ("# Title", "* command: `passfit bench rebench DIR`", "| a |", "* b")


def test_the_page_links_from_its_own_folder_and_cuts_long_tables(scripts, monkeypatch, tmp_path):
    import results_page

    rows = ["| a | 1 |"] * 20 + ["| **geometric mean** (20) | **1** |"]
    lines = [
        "# Title",
        "",
        "* command: `x`",
        "* commit: 0123456789ab, 2026-01-02",
        "* machine: m",
        "",
        "[s](../../docs/splits.md)",
    ]
    (tmp_path / "memory.md").write_text("\n".join([*lines, "", "| model | n |", "| --- | --- |", *rows, ""]))
    monkeypatch.setattr(results_page, "RESULTS", tmp_path)
    text = results_page.page()
    assert "## Title\n\n[memory.md](../benchmarks/results/memory.md), commit: 0123456789ab, 2026-01-02\n" in text
    assert "[s](splits.md)" in text and "machine: m" not in text
    assert "| a | 1 |" not in text and "| **geometric mean** (20) |" in text and "20 rows more in the file." in text
