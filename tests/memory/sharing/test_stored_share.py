"""Stored merges: the program that `share` returns, for every program of the form."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from passfit.memory import share
from passfit.memory.sharing import stored_share as stored
from passfit.program import Program
from passfit.support.result_store import ResultStore

from ..shared_programs import sharing_programs


def renamed(program: Program) -> Program:
    """Return the program with other names."""
    return replace(
        program,
        name="other",
        steps=tuple(replace(each, kernel=f"other_{each.kernel}") for each in program.steps),
        buffers=tuple(replace(each, name=f"other {each.name}") for each in program.buffers),
    )


@given(sharing_programs(), st.booleans(), st.booleans())
def test_a_stored_sharing_is_the_one_made_under_any_names(program: Program, in_place: bool, copies: bool) -> None:
    store = ResultStore(None)
    with patch.object(stored, "shared_store", lambda: store):
        for each in (program, program, renamed(program)):
            assert stored.stored_share(each, in_place=in_place, copies=copies) == share(
                each, in_place=in_place, copies=copies
            )


@given(sharing_programs())
def test_equal_forms_are_shared_once(program: Program) -> None:
    store = ResultStore(None)
    with patch.object(stored, "shared_store", lambda: store):
        expected = stored.stored_share(program)
        with patch.object(stored, "merge_buffers", side_effect=AssertionError):
            assert stored.stored_share(renamed(program)) == renamed(expected)
