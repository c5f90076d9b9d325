"""The page of operators is that of the tables, and what it says compiles does."""

from __future__ import annotations

import re


def test_the_page_of_operators_is_up_to_date(scripts) -> None:
    import operators_page

    assert operators_page.PAGE.read_text(encoding="utf-8") == operators_page.page(), "run benchmarks/operators_page.py"


def test_operators_with_tests_of_onnx_are_listed_as_they_end(scripts) -> None:
    """Of each operator that compiles some case of ONNX's own compiles, of another none."""
    import operators_page

    from ..frontend.onnx_nodes import cases_of
    from ..nodes.refused import OPERATORS, REFUSED

    parts = operators_page.page().split("\n## ")
    compiled, refused = (set(re.findall(r"^\| (\w+) \|", part, re.MULTILINE)) for part in parts[1:3])
    for name in sorted({*OPERATORS} - {"Loop"}):  # one of a loop whose length the data decide
        cases = [case for case in cases_of(name) if case.inputs]  # without, the import computes the operator
        assert not cases or name not in compiled or any(case.name not in REFUSED for case in cases), name
        assert name not in refused or all(case.name in REFUSED for case in cases), name
