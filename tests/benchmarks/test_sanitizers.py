"""A kernel that leaves an operand by one element is found, in the middle of the arena; one that does not, is not."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from passfit.kernels.lower.lower import Lowered
from passfit.program import Buffer, Port, Program, Step, Tensor
from passfit.targets import get_target, how_to_run
from passfit.verify.compare import Case
from passfit.verify.runner import numpy_dtype

HOST = get_target("x86-64")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3"),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed"),
]


@pytest.fixture
def sanitizers(scripts):
    import sanitizers

    return sanitizers


def moved(dtype: str, read: int, write: int, extent: int = 13) -> Lowered:
    """Make two steps x → between → y that read, and write, so many elements further on."""
    from tvm import tirx
    from tvm.ir import Var
    from tvm.tirx import BufferStore, For

    from passfit.tir.loop_nests import buffer_of, int64, kernel_of

    x, y = (buffer_of(name, (extent,), dtype) for name in "xy")
    i = Var("i", "int64")
    body = BufferStore(y, tirx.BufferLoad(x, [i + int64(read)]), [i + int64(write)])
    kernel = kernel_of([x, y], [For(i, int64(0), int64(extent), 0, body)], [], None)
    nbytes = extent * numpy_dtype(dtype).itemsize
    program = Program(
        name="moved",
        steps=(Step("move", (0,), (1,)), Step("move", (1,), (2,))),
        tensors=tuple(Tensor((extent,), dtype, buffer=number) for number in range(3)),
        buffers=tuple(Buffer(name, nbytes) for name in ("x", "between", "y")),
        weights=(),
        inputs=(Port("x", 0),),
        outputs=(Port("y", 2),),
    )
    return Lowered(program, {"move": kernel}, [])


@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize(("read", "write"), [(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)])
def test_an_access_outside_of_an_operand_is_found(sanitizers, tmp_path, dtype, read, write):
    x = np.arange(13).astype(numpy_dtype(dtype))
    row, outputs = sanitizers.sanitized(moved(dtype, read, write), HOST, [Case({"x": x}, {}, {})] * 2, tmp_path)
    if read == write == 0:
        assert "finding" not in row and row["calls"] == 4 and all((each["y"] == x).all() for each in outputs)
    else:
        assert "AddressSanitizer" in row["finding"] and ("READ of" if read else "WRITE of") in row["finding"], row
        assert outputs is None


def test_functions_without_libm_are_defined_for_all_numbers(sanitizers, tmp_path):
    assert sanitizers.float_functions(tmp_path) == ""
