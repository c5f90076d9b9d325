"""Ram against latency as people see it."""

from rich.console import Console

from passfit.report.front_table import front_table, tradeoff_table

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


def tradeoff(**changes: object) -> str:
    points = [
        {"lever": "repeat", "ram": 1024, "cycles": 3000, "extra_compute": 0.25, "flash": None},
        {"lever": "state", "ram": 4096, "cycles": 2000, "extra_compute": 0.0, "flash": 8192},
    ]
    found = {
        "objective": "fastest-within-budget",
        "ram": 5120,
        "flash": 1 << 20,
        "points": points,
        "chosen": 1,
        "within": True,
    }
    console = Console(width=120)
    with console.capture() as capture:
        console.print(tradeoff_table(found | changes))
    return capture.get()


def test_the_time_of_a_smaller_budget_is_beside_the_chosen_one():
    text = tradeoff()
    (chosen,) = [line for line in text.splitlines() if "→" in line]
    assert "4.0 KiB" in chosen and "8.0 KiB" in chosen and "1.00 ×" in chosen
    assert "1.50 ×" in text and "the fastest within ram 5.0 KiB, flash 1.0 MiB is taken" in text
    assert "the least flash within" in tradeoff(objective="flash")


def test_a_budget_that_costs_ram_says_so_with_the_least_ram():
    expected = "a budget asks for time, not for the least ram: ram 4.0 KiB; the least found is 1.0 KiB at 1.50 × the time: --objective ram"
    assert expected in " ".join(tradeoff().split())
    assert "--objective ram" in tradeoff(objective="flash")
    assert "--objective ram" not in tradeoff(chosen=0) + tradeoff(objective="ram", max_slowdown=1.25, whole=1600)


def test_what_more_time_would_save_is_said_and_that_a_slowdown_was_needed():
    reason = {"objective": "ram", "max_slowdown": 1.25, "whole": 1600}
    text = tradeoff(**reason)
    assert "the least ram within 1.25 × the time of the fastest whole kernels is taken" in text
    assert "1.50 × the time would save 3.0 KiB of ram: --max-slowdown 1.88" in text
    needed = tradeoff(**reason, chosen=0)
    assert "only slower plans fit ram 5.0 KiB: 1.88 × the time of the fastest whole kernels was NEEDED" in needed
    assert "would save" not in needed
    assert "NOTHING that was tried fits" in tradeoff(**reason, within=False)


def test_it_is_said_where_nothing_fits():
    assert "NOTHING that was tried fits ram 5.0 KiB" in tradeoff(chosen=0, within=False)
