"""The table of a search: what is proved is said, what a pass is worth has its unit and sign."""

from passfit.report.search_table import search_table
from rich.console import Console

FOUND = {
    "strategy": "orchestrated",
    "evaluations": 22,
    "closed": True,
    "ablation": [
        {"spec": "fold-constant", "ram": 2048, "weights": -64, "kernels": 35, "sum": 0},
        {"spec": "fuse-operators", "ram": None, "weights": None, "kernels": None, "sum": None},
    ],
    "failures": {"legalize": "no"},
    "rejected": {"to-mixed-precision; legalize": "too far off"},
}


def text(found: dict) -> str:
    console = Console(width=120)
    with console.capture() as captured:
        console.print(search_table(found))
    return captured.get()


def test_worth_failures_and_proof_are_told():
    shown = text(FOUND)
    for each in ("+2.0 KiB", "−64 B", "+35", "fails", "closed", "too far off", "sequences that failed: 1"):
        assert each in shown


def test_a_search_that_is_not_closed_does_not_say_so():
    shown = text(FOUND | {"closed": False, "ablation": [], "failures": {}, "rejected": {}})
    assert "closed" not in shown and "22 states" in shown
