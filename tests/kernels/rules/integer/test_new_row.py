"""Add an instruction as a row, as a newcomer would: its switch, its rule, its call in LLVM, and results on this machine.

usdot   total.4s, x.16b, w.16b      four products of uint8 and int8 added to each int32
"""

from dataclasses import replace

import pytest

pytest.importorskip("tvm")

from passfit.codegen.objects import build_module
from passfit.kernels.rules.integer.rows import dot_rule
from passfit.targets import get_target
from passfit.targets.dot_products import DOT_PRODUCTS, DotProduct

from .channels import assert_exact, conv

pytestmark = pytest.mark.tvm
USDOT = DotProduct(
    "usdot", "aarch64", "uint8", {4: ("llvm.aarch64.neon.usdot.v4i32.v16i8", ("i8mm",))}, cpus=("neoverse-v1",), zig=False
)  # fmt: skip
TARGET = replace(get_target("rpi5"), features=("+dotprod", "+i8mm"))


@pytest.fixture(autouse=True)
def _row():
    DOT_PRODUCTS.append(USDOT)
    yield
    DOT_PRODUCTS.remove(USDOT)


def test_a_feature_or_a_processor_switches_it_on_and_zig_is_not_told():
    assert TARGET.machine.dots == ("sdot", "usdot") and get_target("rpi5").machine.dots == ("sdot",)
    assert replace(get_target("rpi4"), cpu="neoverse-v1").machine.dots == ("usdot",)
    assert "+dotprod" in TARGET.zig_cpu and "i8mm" not in TARGET.zig_cpu


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize(
    ("channels", "taps", "pads"), [(8, (3, 3), (1, 1, 1, 1)), (16, (1, 1), (0, 0, 0, 0)), (3, (2, 3), (0, 1, 1, 0))]
)
def test_its_rule_schedules_sums_that_llvm_writes_by_it(channels, taps, pads, lanes, dtype):
    kernel = conv(channels, 16, (7, 9), taps, pads=pads, dtype=dtype)
    weights = frozenset(number for number, param in enumerate(kernel.params) if "w" in param.name)
    assert not list(dot_rule(USDOT)(kernel, weights, get_target("rpi5").machine))
    (result,) = dot_rule(USDOT)(kernel, weights, replace(TARGET.machine, lanes=lanes))
    assert_exact(kernel, [result])
    assembly = build_module({"f": result.kernel}, TARGET.llvm_config()).inspect_source("asm")
    assert ("usdot" in assembly) == (lanes > 1)
