"""Explain the time of a run by kernel."""

import json

from passfit.memory.files.plan_file import CodePart
from passfit.report.arena.explain_time import explain_time, time_table

from ..rendered import rendered

FUNCTIONS = [
    {"function": "conv_relu_2", "instructions": 10, "cycles": [9, 12, 20]},
    {"function": "conv_relu", "instructions": 5, "cycles": [5, 6, 7]},
    {"function": "conv", "instructions": 30, "cycles": [30, 40, 50]},
    {"function": "__aeabi_memcpy", "instructions": 3, "cycles": [3, 4, 5]},
]
CODE = [CodePart("conv", 8, ("first",)), CodePart("conv_relu", 8, ("second", "third"))]


def test_functions_are_added_up_by_kernel_and_the_slowest_comes_first(tmp_path):
    (tmp_path / "cycles.json").write_text(json.dumps({"mhz": 2, "functions": FUNCTIONS}))
    found = explain_time(tmp_path / "cycles.json", CODE)
    assert [(part.name, part.nodes, part.instructions, part.cycles) for part in found.parts] == [
        ("conv", ("first",), 30, (30, 40, 50)),
        ("conv_relu", ("second", "third"), 15, (14, 18, 27)),
        ("memory and arithmetic functions", (), 3, (3, 4, 5)),
    ]
    assert found.cycles == 62
    said = rendered(time_table(found))
    assert "65%" in said and "0.031 ms at 2 MHz" in said


def test_without_a_file_there_is_nothing_to_explain(tmp_path):
    assert explain_time(tmp_path / "cycles.json", CODE) is None
