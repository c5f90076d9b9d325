from hypothesis import given

from passfit.program.check import first_problem

from ..strategies import programs


@given(programs())
def test_generated_programs_are_well_formed(program):
    assert first_problem(program) is None
