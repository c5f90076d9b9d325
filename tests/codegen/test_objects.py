"""Test the object files of kernels: one each, deterministic, compiled once."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax

from passfit.codegen import objects
from passfit.codegen.elf import read_object, together
from passfit.codegen.objects import build_objects
from passfit.kernels.lower.schedule_program import schedule_program
from passfit.targets import get_target
from passfit.tir.structural_key import structural_key

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
def test_each_kernel_has_an_object_and_the_bytes_are_the_same_every_time_kept_or_not(tmp_path_factory, widths):
    kernels, target = chain(widths), get_target("x86-64")
    built = []
    for kept in (str(tmp_path_factory.mktemp("store")), "off"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PASSFIT_STORE", kept)
            for _ in range(2):
                folder = tmp_path_factory.mktemp("objects")
                built.append([path.read_bytes() for path in build_objects(kernels, target, folder)])
    assert built[0] == built[1] == built[2] == built[3]
    found = [read_object(each) for each in built[0]]
    defined = [symbol.name for each in found for symbol in each.symbols if symbol.section]
    assert [defined.count(name) for name in kernels] == [1] * len(kernels)
    assert not [name for name in defined if "ffi" in name]
    assert together(found).read_only_bytes() == sum(each.read_only_bytes() for each in found)


@pytest.mark.slow
def test_what_changes_is_compiled_alone(tmp_path, monkeypatch):
    built = []
    compile_ = objects._compile
    monkeypatch.setattr(
        objects, "_compile", lambda kernels, *rest: built.append([*kernels]) or compile_(kernels, *rest)
    )
    monkeypatch.setenv("PASSFIT_STORE", str(tmp_path))
    one, other = chain([5, 6]), chain([5, 7])  # the last product and its softmax differ
    first, last = ({name for name in one if structural_key(one[name]) in keys} for keys in split(one, other))
    board, processor = get_target("mps2-an386"), get_target("x86-64")
    for kernels, target, compiled in (
        (one, processor, {*one}), (one, processor, set()), (other, processor, last), (one, board, {*one}),
        (one, processor.with_opt("speed"), {*one}), ({"other": one[min(first)]}, processor, {"other"}),
    ):  # fmt: skip
        built.clear()
        build_objects(kernels, target, tmp_path)
        assert sorted(built) == sorted([name] for name in compiled)


def split(one: dict, other: dict) -> tuple[set[str], set[str]]:
    """Return the keys of the kernels that two programs share, and of those that the first alone has."""
    keys, others = ({structural_key(each) for each in kernels.values()} for kernels in (one, other))
    assert keys & others and keys - others
    return keys & others, keys - others


@pytest.mark.fault("full disk", "LLVM cannot write an object", "an error of Python, not the end of the process")
def test_a_full_disk_is_an_error_of_python_and_no_end_of_the_process():
    script = """
from pathlib import Path
from tests.codegen.test_objects import chain
from passfit.codegen.objects import build_object
from passfit.targets import get_target
from passfit.tir.structural_key import structural_key
try:
    build_object(chain([5]), get_target("x86-64"), Path("/dev/full"))
except OSError as error:
    print(error.strerror)
"""
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "No space left on device\n"), done.stderr
