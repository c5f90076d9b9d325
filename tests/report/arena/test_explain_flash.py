"""The parts of flash add up to the footprint's weights and code, whatever the program."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from passfit.memory.files.plan_file import CodePart
from passfit.program import Program, Weight
from passfit.report.arena.explain_flash import ALIGNMENT, REST, explain_flash, flash_tables, largest

from ...strategies import chain, programs
from ..rendered import words
from ..results import footprint, saved


@given(programs(), st.data())
def test_the_parts_add_up_to_weights_and_code(program: Program, data: st.DataObject):
    names = st.lists(st.sampled_from("abc"), max_size=2, unique=True).map(tuple)
    weights = tuple(replace(each, initializers=data.draw(names)) for each in program.weights)
    code = tuple(CodePart(f"k{n}", size) for n, size in enumerate(data.draw(st.lists(st.integers(0, 900), min_size=1))))
    plan = replace(saved(replace(program, weights=weights)), code=code)
    found = explain_flash(plan, footprint().best)
    assert sum(part.nbytes for part in found.weights) + found.alignment == program.weight_bytes
    assert 0 <= found.alignment < 64 * max(1, len(weights))
    assert found.rest is not None and sum(part.nbytes for part in found.code) + found.rest == footprint().best.code
    assert [part.nbytes for part in found.weights] == sorted((part.nbytes for part in found.weights), reverse=True)
    assert sum(part.stored for part in found.weights) == len(weights)


def plan_with_names():
    weights = (Weight("w", 500, "0", ("w",)), Weight("w#2", 300, "1", ("w",)), Weight("b", 64, "2", ("b", "scale")))
    program = replace(chain(64, 64), weights=weights)
    return replace(saved(program), code=(CodePart("k0", 700, ("node0",)), CodePart("expf", 60)))


def test_weights_of_one_initializer_are_one_row():
    found = explain_flash(plan_with_names(), footprint().best)
    assert [(part.title, part.nbytes, part.stored) for part in found.weights] == [
        ("w", 800, 2),
        ("b and 1 more", 64, 1),
    ]
    assert found.alignment == 12 + 20 and found.rest == 240


def test_the_tables_name_every_part_and_the_rest():
    said = words(flash_tables(explain_flash(plan_with_names(), footprint().best)))
    for part in (
        "Weights by initializer: 896 B",
        "w 800 B",
        f"{ALIGNMENT} 32 B",
        "Code by kernel: 1000 B",
        f"{REST} 240 B",
    ):
        assert part in said, part
    assert "k0 700 B node0" in said and "b, scale" in words(
        flash_tables(explain_flash(plan_with_names(), footprint().best), wide=True)
    )


def test_the_largest_parts_are_named_across_weights_and_code():
    found = explain_flash(plan_with_names(), footprint().best)
    assert largest(found, 2, 40) == ["w 800 B", "the code of k0 700 B (node0)"]


def test_a_plan_of_an_earlier_passfit_has_no_code():
    found = explain_flash(saved(chain(64, 64)), footprint().best)
    assert (found.code, found.rest) == ((), None) and "Compile the model again" in words(flash_tables(found))
