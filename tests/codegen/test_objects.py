"""Test the distribution of kernels over object files: each in one of them, deterministic."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax

from passfit.codegen.elf import read_object, together
from passfit.codegen.objects import build_objects
from passfit.kernels.lower.schedule_program import schedule_program
from passfit.targets import get_target

from ..kernels.programs import lowered, weight
from ..profiles import examples

pytestmark = pytest.mark.tvm


def chain(widths):
    """Make kernels of distinct sizes: a softmax of a product per width."""

    def body(x):
        for seed, width in enumerate(widths):
            x = relax.op.nn.softmax(
                relax.op.matmul(x, weight(int(x.ty.shape[1]) if seed == 0 else widths[seed - 1], width))
            )
        return x

    return schedule_program(lowered([(4, 8)], body))[0].kernels


@settings(max_examples=examples(5))
@given(st.lists(st.integers(5, 60), min_size=1, max_size=6))
def test_every_kernel_is_in_one_object_and_the_bytes_are_the_same_every_time(tmp_path_factory, widths):
    kernels, target = chain(widths), get_target("x86-64")
    objects = [
        [path.read_bytes() for path in build_objects(kernels, target, tmp_path_factory.mktemp("objects"))]
        for _ in range(2)
    ]
    assert objects[0] == objects[1]
    found = [read_object(each) for each in objects[0]]
    defined = [symbol.name for each in found for symbol in each.symbols if symbol.section]
    assert [defined.count(name) for name in kernels] == [1] * len(kernels)
    assert not [name for name in defined if "ffi" in name]
    assert together(found).read_only_bytes() == sum(each.read_only_bytes() for each in found)


def test_a_full_disk_is_an_error_of_python_and_no_end_of_the_process():
    script = """
from pathlib import Path
from tests.codegen.test_objects import chain
from passfit.codegen.objects import build_object
from passfit.targets import get_target
try:
    build_object(chain([5]), get_target("x86-64"), Path("/dev/full"))
except OSError as error:
    print(error.strerror)
"""
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "No space left on device\n"), done.stderr
