"""Lower small Relax modules and check the programs read from them."""

import hashlib

import numpy as np
import pytest

pytest.importorskip("tvm")

from tvm import relax

from passfit.errors import ModelError
from passfit.kernels.lower.lower import lower
from passfit.kernels.lower.schedule_program import largest_default_workspace, schedule_program
from passfit.program.check import first_problem
from passfit.program.workspaces import largest_workspace

from ..programs import lowered, module_of, random_inputs, run, weight

pytestmark = pytest.mark.tvm
_UNFUSED = ("legalize",)


def test_kernels_run_in_order_over_buffers_and_views():
    def body(x):
        return relax.op.nn.relu(relax.op.reshape(relax.op.exp(x), (6, 2)))

    program = lowered([(3, 4)], body, _UNFUSED).program
    assert first_problem(program) is None
    assert len(program.steps) == 2
    exp, relu = program.steps
    written, read = program.tensors[exp.writes[0]], program.tensors[relu.reads[0]]
    assert written.buffer == read.buffer and written.shape == (3, 4) and read.shape == (6, 2)
    assert [buffer.nbytes for buffer in program.buffers] == [48, 48, 48]


def test_equal_constants_are_one_weight():
    def body(x):
        return relax.op.multiply(relax.op.add(x, weight(4, seed=3)), weight(4, seed=3))

    program = lowered([(2, 4)], body, _UNFUSED)
    assert len(program.weights) == 1
    assert program.program.weights[0].digest == hashlib.sha256(program.weights[0].tobytes()).hexdigest()


def test_several_outputs_of_a_kernel_are_written_by_one_step():
    def body(x):
        return relax.op.concat(relax.op.split(x, 2, axis=1), axis=0)

    program = lowered([(3, 4)], body, _UNFUSED)
    assert [len(step.writes) for step in program.program.steps] == [2, 1]
    (value,) = random_inputs(program)
    (result,) = run(program, [value])
    np.testing.assert_array_equal(result, np.concatenate(np.split(value, 2, axis=1)))


def test_what_needs_the_runtime_is_refused_by_name():
    with pytest.raises(ModelError, match="'sort'"):
        lower(module_of([(3, 4)], lambda x: relax.op.sort(x)), "small", ["x0"], ["y"])


def test_schedules_change_neither_results_nor_the_bytes_of_weights():
    def body(x):
        hidden = relax.op.nn.relu(relax.op.nn.conv2d(x, weight(16, 3, 3, 3), padding=1, strides=2))
        pooled = relax.op.nn.max_pool2d(hidden, (2, 2), (2, 2))
        flat = relax.op.reshape(pooled, (1, 16 * 9))
        return relax.op.nn.softmax(relax.op.matmul(flat, weight(144, 10)))

    program = lowered([(1, 3, 12, 12)], body)
    scheduled, workspace = schedule_program(program)
    assert workspace == 0 and largest_workspace(scheduled.program) <= 4096 < largest_default_workspace(program)
    assert scheduled.program.weight_bytes == program.program.weight_bytes
    assert [sorted(a.ravel()) for a in scheduled.weights] == [sorted(a.ravel()) for a in program.weights]
    inputs = random_inputs(program)
    np.testing.assert_allclose(run(scheduled, inputs)[0], run(program, inputs)[0], rtol=1e-4, atol=1e-6)
    again, same = schedule_program(lowered([(1, 3, 12, 12)], body))
    assert same == workspace and again.program == scheduled.program
    assert [k.script() for k in again.kernels.values()] == [k.script() for k in scheduled.kernels.values()]
