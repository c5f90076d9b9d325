"""Ram against latency as people see it."""

from rich.console import Console

from passfit.report.front_table import front_table

POINTS = [
    {"lever": "split", "ram": 1024, "latency": 9.0, "extra_compute": 0.125},
    {"lever": "rung", "ram": 2048, "latency": 12.0, "extra_compute": 0.0},
    {"lever": "share", "ram": 4096, "latency": 2.0, "extra_compute": 0.0},
]


def shown(**changes: object) -> str:
    found = {"unit": "ms", "limit": "1.5x", "most": 3.0, "points": POINTS, "pareto": [0, 2], "chosen": 2, "within": True}
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
