"""Ram against latency as people see it."""

from rich.console import Console

from passfit.report.front_table import front_table, remedy_lines, tradeoff_table

from .results import footprint

POINTS = [
    {"lever": "split", "ram": 1024, "latency": 9.0, "extra_compute": 0.125},
    {"lever": "rung", "ram": 2048, "latency": 12.0, "extra_compute": 0.0},
    {"lever": "share", "ram": 4096, "latency": 2.0, "extra_compute": 0.0},
]


def shown(**changes: object) -> str:
    found = {
        "unit": "ms",
        "limit": "1.5x",
        "most": 3.0,
        "points": POINTS,
        "pareto": [0, 2],
        "chosen": 2,
        "within": True,
    }
    console = Console(width=120)
    with console.capture() as capture:
        console.print(front_table(found | changes))
    return capture.get()


def test_the_front_is_listed_and_what_was_chosen_is_marked():
    text = shown()
    assert "1.0 KiB" in text and "12.5 %" in text and "2.0 KiB" not in text
    assert next(line for line in text.splitlines() if "→" in line).count("4.0 KiB") == 1
    assert "1.5x is 3.000 ms: the least ram within it" in text


def test_it_is_said_where_nothing_is_fast_enough():
    assert "NOTHING that was tried is within it" in shown(within=False, limit="1ms")


def test_instructions_are_whole():
    assert "9.000" not in shown(unit="instructions")


CANDIDATES = [
    {"lever": "repeat", "ram": 1024, "cycles": 3000, "extra_compute": 0.25},
    {"lever": "state", "ram": 4096, "cycles": 2000, "extra_compute": 0.0, "flash": 8192},
]
FOUND = {
    "objective": "fastest-within-budget",
    "ram": 5120,
    "flash": 1 << 20,
    "points": CANDIDATES,
    "chosen": 1,
    "within": True,
}


def remedies(in_params: bool = False, **changes: object) -> list[str]:
    return remedy_lines({"tradeoff": FOUND | {"whole": 1600} | changes}, footprint(4096).best, in_params)


def tradeoff(**changes: object) -> str:
    console = Console(width=120)
    with console.capture() as capture:
        console.print(tradeoff_table(FOUND | changes))
    return capture.get()


def test_the_time_of_a_smaller_budget_is_beside_the_chosen_one():
    text = tradeoff()
    (chosen,) = [line for line in text.splitlines() if "→" in line]
    assert "4.0 KiB" in chosen and "8.0 KiB" in chosen and "1.00 ×" in chosen
    assert "1.50 ×" in text and "the fastest within ram 5.0 KiB, flash 1.0 MiB is taken" in text
    assert "the least flash within" in tradeoff(objective="flash")


def test_a_budget_that_costs_ram_is_no_advice_by_itself_and_the_least_ram_is_a_remedy():
    (line,) = remedies()
    assert line == "less ram: --objective ram --max-slowdown 1.88: ram 1.0 KiB instead of 4.0 KiB at 1.50 × the time"
    assert remedies(objective="flash") == [line]
    assert remedies(chosen=0) == []
    assert remedies(in_params=True) == [
        "less ram: objective: ram, max-slowdown: 1.88 under search in params.yaml: ram 1.0 KiB instead of 4.0 KiB at 1.50 × the time"
    ]


def test_what_more_time_would_save_is_said_and_that_a_slowdown_was_needed():
    reason = {"objective": "ram", "max_slowdown": 1.25, "whole": 1600}
    text = tradeoff(**reason)
    assert "the least ram within 1.25 × the time of the fastest whole kernels is taken" in text
    assert remedies(**reason) == ["less ram: --max-slowdown 1.88: ram 1.0 KiB instead of 4.0 KiB at 1.50 × the time"]
    needed = tradeoff(**reason, chosen=0)
    assert "only slower plans fit ram 5.0 KiB: 1.88 × the time of the fastest whole kernels was NEEDED" in needed
    assert "NOTHING that was tried fits" in tradeoff(**reason, within=False)


def test_it_is_said_where_nothing_fits_by_the_limits_as_they_were_given():
    assert "NOTHING that was tried fits ram 5.0 KiB, flash 1.0 MiB; the least ram" in tradeoff(chosen=0, within=False)
    text = tradeoff(chosen=0, within=False, ram=1280, stack=768)
    assert "NOTHING that was tried fits ram 2.0 KiB, 768 B of it for the stack, flash 1.0 MiB" in text
