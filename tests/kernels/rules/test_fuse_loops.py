"""Check the default schedule: every value is computed once, at its consumer."""

import pytest

pytest.importorskip("tvm")

from tvm import relax

from passfit.kernels.rules.fuse_loops import fuse_loops

from ..programs import lowered

pytestmark = pytest.mark.tvm


def test_a_softmax_runs_row_by_row():
    (kernel,) = lowered([(6, 10)], lambda x: relax.op.nn.softmax(x)).kernels.values()
    before, after = kernel.script(), fuse_loops(kernel).script()
    assert before.count("for ") == 4 and 'T_softmax_exp")' in before
    loops = [line.strip() for line in after.splitlines() if line.strip().startswith("for ")]
    assert loops[0] == "for i0 in range(T.int64(6)):"
    assert all("T.int64(6)" not in line for line in loops[1:])
    assert 'T_softmax_exp")' not in after
    names = [f'"{name}")' for name in ("T_softmax_maxelem", "T_softmax_expsum", "T_softmax_norm")]
    assert [after.index(name) for name in names] == sorted(after.index(name) for name in names)


def test_what_follows_a_reduction_does_not_change_its_kernel_twice():
    (kernel,) = lowered([(6, 10)], lambda x: relax.op.nn.softmax(x)).kernels.values()
    assert fuse_loops(kernel).script() == fuse_loops(kernel).script()
