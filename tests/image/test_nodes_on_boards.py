"""ONNX's operator tests on boards, sixty in an image: functions of floats, arithmetic of the compiler's runtime, integers."""

from __future__ import annotations

import pytest

from passfit.targets import get_target, how_to_run

from ..nodes.building import compile_and_run
from ..nodes.refused import REFUSED
from ..nodes.test_onnx_nodes import FOUR_DIGITS, SEQUENCES, TOLERANCE, sample
from ..verify.one_output import compare_output

pytestmark = pytest.mark.nightly
#: images of a board: making the cases takes seconds, too long to count them while tests are collected
PARTS = 8


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547", "rv32-virt"])
def test_a_board_computes_what_onnx_expects(tmp_path, board, part):
    target, cases = get_target(board), sample()[part::PARTS]
    if how_to_run(target).command is None:
        pytest.skip(how_to_run(target).how)
    outcomes = compile_and_run(cases, SEQUENCES["tvm-default"], tmp_path, target)
    assert [f"{case.name}: {outcomes[case.name].failure}" for case in cases if outcomes[case.name].failure] == []
    assert [case.name for case in cases if outcomes[case.name].refusal and case.name not in REFUSED] == []
    for case in cases:
        for result, expected in zip(outcomes[case.name].outputs, case.outputs):
            compare_output(
                case.name, result, expected, 1e-3 if case.name in FOUR_DIGITS else TOLERANCE.get(expected.dtype.name, 0)
            )
