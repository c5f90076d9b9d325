"""Compare the functions of a library without libm with numpy's, compiled for this host under other names."""

import ctypes
import math

import numpy as np
import pytest

from passfit.codegen.bare.float_functions import FLOAT_FUNCTIONS, SOURCE
from passfit.targets import host_libc, native_target, zig_cc

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(native_target() is None, reason="no target of the catalogue runs natively on this machine"),
]
#: numpy's names where they are others
NUMPY = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan, "nearbyint": np.rint,
    "roundeven": np.rint, "pow": np.power, "erf": np.vectorize(lambda x: math.erf(float(x))),
    "round": lambda x: np.copysign(np.trunc(np.abs(x)) + (np.abs(x) - np.trunc(np.abs(x)) >= 0.5), x),
}  # fmt: skip
EXACT = {"ceil", "floor", "fmod", "nearbyint", "rint", "round", "roundeven", "trunc"}
SPECIAL = [
    0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 1e-310, 1e-45, 1e30, -1e30, 3.4e38, 8388607.5, -8388608.5,
    4503599627370495.5, 709, -745, 88.9, -104,
]  # fmt: skip


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> ctypes.CDLL:
    folder, target = tmp_path_factory.mktemp("functions"), native_target()
    lines = [SOURCE.read_text(encoding="utf-8")]
    for name in sorted(FLOAT_FUNCTIONS):
        real = "float" if name.endswith("f") and name != "erf" else "double"
        more, given = (f", {real} y", "x, y") if two(name) else ("", "x")
        lines.append(f"{real} our_{name}({real} x{more}) {{ return {name}({given}); }}")
    lines.append("void our_products(const int32_t *x, const uint32_t *y, int32_t *z, int n) {")
    lines.append("  for (int i = 0; i < n; i++) z[i] = passfit_product(x[i], y[i]); }")
    (folder / "functions.c").write_text("\n".join(lines), encoding="utf-8")
    strict = ["-std=c99", "-O2", "-ffreestanding", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]
    zig_cc(
        [*strict, "-shared", "-fPIC", "functions.c", "-o", "functions.so"], target, folder, zig_target=host_libc(target)
    )
    return ctypes.CDLL(str(folder / "functions.so"))


def two(name: str) -> bool:
    return name in ("pow", "powf", "fmod", "fmodf")


@pytest.mark.parametrize("name", sorted(FLOAT_FUNCTIONS))
def test_a_function_is_that_of_the_c_library(library, name):
    single = name.endswith("f") and name != "erf"
    kind, dtype = (ctypes.c_float, np.float32) if single else (ctypes.c_double, np.float64)
    plain = name.removesuffix("f") if single else name
    random = np.random.default_rng(0)
    drawn = [
        random.normal(size=500) * 3,
        random.normal(size=500) * np.exp(random.uniform(-60, 60, 500)),
        random.uniform(-1, 1, 500),
    ]
    with np.errstate(all="ignore"):
        x = np.concatenate([SPECIAL, *drawn]).astype(dtype)
        operands = [x]
        if two(name):
            y = np.resize(
                random.permutation(np.concatenate([SPECIAL, random.integers(-5, 6, 500), random.normal(size=500)])),
                x.size,
            )
            operands = [
                np.concatenate([x, np.repeat(SPECIAL, len(SPECIAL))]).astype(dtype), np.concatenate([y, np.tile(SPECIAL, len(SPECIAL))]).astype(dtype)
            ]  # fmt: skip
        function = getattr(library, f"our_{name}")
        function.restype, function.argtypes = kind, [kind] * len(operands)
        found = np.array([function(*map(float, each)) for each in zip(*operands, strict=True)], dtype)
        expected = NUMPY.get(plain, getattr(np, plain, None))(
            *(each.astype(np.longdouble) for each in operands)
        ).astype(dtype)
        error = np.abs(found - expected) / np.where(expected == 0, 1, np.abs(expected))
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    limit = 0 if plain in EXACT else np.finfo(dtype).eps if single else 1e-12
    wrong = ~same & ~(error <= limit)
    assert not wrong.any(), [each[wrong][:3] for each in (*operands, found, expected)]
    signed = ~np.isnan(expected)
    assert (np.signbit(found) == np.signbit(expected))[signed].all()


def test_whole_powers_of_whole_numbers_are_exact(library):
    function = library.our_pow
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double] * 2
    for base in range(-20, 21):
        for exponent in range(13):
            assert function(base, exponent) == base**exponent


@pytest.mark.parametrize("kind", ["scales", "ties", "any"])
def test_the_product_of_an_integer_and_a_float_is_that_of_floats(library, kind):
    random = np.random.default_rng(7)
    count = 400_000
    whole = (random.integers(-(1 << 31), 1 << 31, count) >> random.integers(0, 32, count)).astype(np.int32)
    kept = 0xF00000 if kind == "ties" else 0xFFFFFF
    powers = random.integers(0, 255, count) if kind == "any" else random.integers(105, 127, count)
    bits = ((random.integers(0, 1 << 23, count) & kept) | powers << 23).astype(np.uint32)
    with np.errstate(over="ignore"):
        expected = np.rint(whole.astype(np.float32) * bits.view(np.float32)).astype(np.float64)
    found = np.empty(count, np.int32)
    pointers = (each.ctypes.data_as(ctypes.c_void_p) for each in (whole, bits, found))
    library.our_products(*pointers, count)
    np.testing.assert_array_equal(found, np.clip(expected, -2147483647, 2147483647).astype(np.int32))
