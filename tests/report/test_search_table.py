"""The table of a search: what is proved is said, what a pass is worth has its unit and sign."""

from rich.console import Console

from passfit.report.search_table import search_table

FOUND = {
    "strategy": "orchestrated",
    "evaluations": 22,
    "closed": True,
    "ablation": [
        {"spec": "fold-constant", "ram": 2048, "weights": -64, "kernels": 35, "sum": 0},
        {"spec": "fuse-operators", "ram": None, "weights": None, "kernels": None, "sum": None},
    ],
    "levers": [
        {"lever": "share", "arena": 4096, "extra_compute": 0.0, "passes": ["share", "order"]},
        {"lever": "split", "arena": 2048, "extra_compute": 0.0, "passes": ["split-rows{steps=0-1}", "order"]},
        {"lever": "repeat", "arena": 2048, "extra_compute": 0.125, "passes": ["split-rows{steps=0-1}", "order"]},
    ],
    "extra_compute": 0.125,
    "next": "nothing may be run again",
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


def test_every_lever_has_its_arena_and_extra_compute():
    lines = text(FOUND).splitlines()
    rows = [line for line in lines if "KiB" in line and "%" in line]
    assert len(rows) == 1 and "2.0 KiB" in rows[0] and "12.5 %" in rows[0]
    assert any("memory shared" in line and "4.0 KiB" in line and "–" in line for line in lines)
    assert any("nothing may be run again" in line for line in lines)


def test_a_search_that_is_not_closed_does_not_say_so():
    shown = text(FOUND | {"closed": False, "ablation": [], "levers": [], "failures": {}, "rejected": {}})
    assert "closed" not in shown and "22 states" in shown


def test_the_family_a_search_chose_by_is_told():
    assert "by-architecture (mobile): 22 states" in text(FOUND | {"strategy": "by-architecture", "family": "mobile"})
