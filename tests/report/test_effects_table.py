import io

from rich.console import Console

from passfit.report.effects_table import ROWS, effects_table, shown

DEFAULT = "legalize; fold-constant; fuse-operators"


def each(spec, ram, total=0, **more):
    return {"spec": spec, "changed": bool(ram), "delta": {"ram": ram, "sum": total, "weights": 0, "kernels": 0}} | more


def test_what_helps_and_hurts_and_what_passes_do_to_each_other_fits_100_columns():
    names = [f"{'reorder-permute-dims-after-concat'[:-2]}-{n}" for n in range(ROWS + 2)]
    pair = {"first": "[b]first", "effect": "enables", "alone": {"ram": 0, "sum": 0}}
    pairs = [pair | {"second": name, "delta": {"ram": -2048 * n, "sum": 0}} for n, name in enumerate(names)]
    passes = [each("good", -4096), each("bad", 4096), each("idle", 0), each("broken", 0, failed="RuntimeError: boom")]
    found = {"target": "rpi4", "passes": passes, "pairs": pairs, "tried": {"passes": 4, "pairs": 8, "states": 3}}
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(effects_table(found, 1.25, {"good": 0.042}))
    text = console.export_text()
    lines = text.splitlines()
    assert all(len(line) <= 100 for line in lines)
    assert any("good" in line and "−4.0 KiB" in line and " 42 " in line and "helps" in line for line in lines)
    assert any("bad" in line and "+4.0 KiB" in line and "hurts" in line for line in lines)
    assert "change nothing: idle" in text and "failed: broken (RuntimeError: boom)" in text
    listed = [line for line in lines if "[b]first → " in line]
    assert len(listed) == ROWS and "−14.0 KiB" in listed[0] and "2 more" in text
    assert "4 passes alone and 8 pairs: 3 states in 1.2 s" in text


def test_a_way_down_is_called_by_how_it_differs_from_tvms():
    assert shown("legalize; fold-constant{grow=0}; fuse-operators") == "fold-constant{grow=0}"
    assert shown("legalize; fuse-operators{depth=2}") == "fuse-operators{depth=2}, without fold-constant"
    assert shown(DEFAULT) == DEFAULT and shown("order") == "order"
