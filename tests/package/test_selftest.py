"""Compare recorded outputs with a fake library's: what passes and what is counted, for every dtype."""

import ctypes

import ml_dtypes
import numpy as np
import pytest

from passfit.codegen.template import render
from passfit.package.write import _TEMPLATES
from passfit.targets import get_target, host_libc, how_to_run, zig_cc

pytestmark = pytest.mark.slow
HOST = get_target("x86-64")
#: recorded values and the largest difference
RECORDED = {
    "float32": (np.array([1.0, -2.0, np.nan, np.inf, -np.inf, 0.0], np.float32), 0.25),
    "float64": (np.array([1.0, -2.0, np.nan, np.inf, -np.inf, 1e-300], np.float64), 0.25),
    "float16": (np.array([1.0, -2.0, np.nan, np.inf, -np.inf, 6e-8], np.float16), 0.25),
    "bfloat16": (np.array([1.0, -2.0, np.nan, np.inf, -np.inf, 3.0], ml_dtypes.bfloat16), 0.25),
    "int8": (np.array([1, -2, 127, -128, 0, -1], np.int8), 1),
    "uint8": (np.array([1, 2, 127, 128, 0, 255], np.uint8), 1),
    "int32": (np.array([1, -2, 1 << 30, -(1 << 30), 0, 7], np.int32), 0),
    "bool": (np.array([1, 0, 1, 0, 1, 1], bool), 0),
}
_STUB = """
#include "m.h"
static unsigned char at_input[4], at_output[{count}][48];
int32_t m_run(void) {{ return at_input[0] == 9 ? 0 : 4; }}
void *m_input(int i) {{ return i ? 0 : at_input; }}
const void *m_output(int i) {{ return at_output[i]; }}
void m_set(int i, const unsigned char *from, int n) {{ for (int k = 0; k < n; ++k) at_output[i][k] = from[k]; }}
"""


@pytest.fixture(scope="module")
def device(tmp_path_factory):
    """Compile the self test, without a warning, with a library whose outputs are set by hand."""
    if not how_to_run(HOST).native:
        pytest.skip("the host cannot run x86-64-v3")
    folder = tmp_path_factory.mktemp("selftest")
    outputs = [
        {
            "dtype": dtype,
            "nbytes": values.nbytes,
            "elements": values.size,
            "tolerance": limit,
            "values": [values.tobytes()],
        }
        for dtype, (values, limit) in RECORDED.items()
    ]
    values = {
        "model": "m */", "m": "m", "M": "M", "cases": 1, "golden": {"source": "here"}, "exact": True,
        "dtypes": sorted(dtype for dtype, (_, limit) in RECORDED.items() if limit), "outputs": outputs,
        "inputs": [{"nbytes": 4, "values": [b"\x09\x01\x02\x03"]}],
    }  # fmt: skip
    for name in ("selftest.c", "selftest.h"):
        (folder / f"m_{name}").write_text(render(f"{name}.j2", _TEMPLATES, **values))
    (folder / "m.h").write_text(
        "#include <stdint.h>\nvoid *m_input(int);\nconst void *m_output(int);\nint32_t m_run(void);\nvoid m_set(int, const unsigned char *, int);\n"
    )
    (folder / "stub.c").write_text(_STUB.format(count=len(outputs)))
    strict = [
        "-std=c99",
        "-O1",
        "-fno-sanitize=all",
        "-Wall",
        "-Wextra",
        "-Wconversion",
        "-pedantic",
        "-Werror",
        "-DPASSFIT_SELFTEST",
    ]
    zig_cc(
        [*strict, "-shared", "-fPIC", "m_selftest.c", "stub.c", "-o", "m.so"], HOST, folder, zig_target=host_libc(HOST)
    )
    return ctypes.CDLL(str(folder / "m.so"))


def differing(device, changed=None, value=None):
    for number, (dtype, (recorded, _)) in enumerate(RECORDED.items()):
        found = value if dtype == changed else recorded
        device.m_set(number, np.ascontiguousarray(found).tobytes(), recorded.nbytes)
    return device.m_selftest()


def test_recorded_outputs_pass_with_their_nan_and_infinities(device):
    assert differing(device) == 0


@pytest.mark.parametrize("dtype", RECORDED)
def test_elements_beyond_the_limit_are_counted(device, dtype):
    recorded, limit = RECORDED[dtype]
    if limit:
        near, far = recorded.copy(), recorded.copy()
        near[:2] += np.array(limit if recorded.dtype.kind in "iu" else 0.2, recorded.dtype)
        far[:2] += np.array(3, recorded.dtype)
        assert differing(device, dtype, near) == 0 and differing(device, dtype, far) == 2
    else:
        far = recorded.copy()
        far[3] = not far[3]
        assert differing(device, dtype, far) == 1


@pytest.mark.parametrize("dtype", [dtype for dtype in RECORDED if "float" in dtype])
def test_nan_and_infinities_have_to_be_where_they_were(device, dtype):
    moved = np.array([np.nan, -2.0, 0.0, -np.inf, np.inf, np.inf], RECORDED[dtype][0].dtype)
    assert differing(device, dtype, moved) == 5
