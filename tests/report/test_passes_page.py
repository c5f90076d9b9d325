"""docs/passes.md is that of the catalogue; every pass of the paper has its counterpart, or the reason why not."""

from __future__ import annotations

from dataclasses import fields

from passfit.passes.sequence.catalogue import CATALOGUE
from passfit.report.pages.passes_page import PAGE, passes_page
from passfit.report.pages.verma_passes import VERMA_PASSES
from passfit.search.knowledge.family import FAMILIES
from passfit.search.knowledge.store import SHIPPED, read_records

COMMAND = "run `.venv/bin/passfit passes --markdown > docs/passes.md`"


def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == passes_page(read_records(SHIPPED)), COMMAND


def test_every_pass_option_and_family_is_on_the_page():
    page = passes_page(())
    for name, kind in CATALOGUE.items():
        assert f"| `{name}` |" in page and kind.summary.replace("|", "\\|") in page
        assert all(f"`{option.name}`" in page for option in fields(kind)), name
    assert all(f"\n| {family} |" in page for family in FAMILIES)


def test_a_table_has_as_many_cells_in_every_row():
    rows: list[list[str]] = [[]]
    for line in passes_page(read_records(SHIPPED)).split("\n"):
        if line.startswith("|"):
            rows[-1].append(line)
        elif rows[-1]:
            rows.append([])
    for table in filter(None, rows):
        assert len({row.replace("\\|", "").count("|") for row in table}) == 1, table[0]


def test_the_paper_has_28_passes():
    names = [each.name for each in VERMA_PASSES]
    assert len(names) == len(set(names)) == 28 and names == sorted(names, key=str.lower)
    assert all(set(each.categories.split()) <= {"BL", "RN", "MN", "SSD", "BR", "AD"} for each in VERMA_PASSES)


def test_each_has_counterparts_or_a_reason():
    for each in VERMA_PASSES:
        assert bool(each.counterparts) != bool(each.reason), each.name


def test_counterparts_are_in_the_catalogue():
    assert {name for each in VERMA_PASSES for name in each.counterparts} <= set(CATALOGUE)
