"""Kernels are compiled by Helium's vectors where they have some: not LLVM's own, and not where they ask for NaN."""

from dataclasses import replace

import pytest

pytest.importorskip("tvm")

import tvm
from tvm import te

from passfit.codegen.bare.helium import choose_vectors
from passfit.codegen.source.assembly import assemble
from passfit.kernels.schedule.candidates import schedules
from passfit.targets import get_target, zig_cc

from ...kernels.rules.integer.channels import conv

pytestmark = [pytest.mark.slow, pytest.mark.tvm]
M55 = get_target("mps3-an547")
M85 = replace(M55, cpu="cortex-m85")
INTEGERS = replace(M55, features=("+mve", "+dsp"), float_abi="soft")


def assembly(kernel, target, folder):
    return assemble({"kernel": schedules(kernel, frozenset({1}), target.machine).within(4096).kernel}, target, folder)


@pytest.mark.parametrize("target", [M55, M85], ids=lambda target: target.cpu)
def test_products_sums_and_results_are_vectors(tmp_path, target):
    text = assembly(conv(16, 8, (5, 5), (3, 3), pads=(1, 1, 1, 1)), target, tmp_path)
    # 9 runs of four filters, unrolled
    assert text.count("vmlava.s8") == 36 and text.count("vcvtn.s32.f32") == 1 and ".arch_extension" in text
    text = assembly(conv(16, 16, (5, 5), (3, 3), pads=(1, 1, 1, 1), groups=16, last=(0, 1, 4)), target, tmp_path)
    assert text.count("vmul.i32") >= 9 and text.count("vcvtn.s32.f32") == 1


def test_cores_with_vectors_of_integers_alone_round_by_scalars(tmp_path):
    text = assembly(conv(16, 8, (5, 5), (3, 3)), INTEGERS, tmp_path)
    assert "vmlava.s8" in text and "vcvtn" not in text


def test_sources_with_vectors_are_assembled_by_the_options_of_all_code(tmp_path):
    (tmp_path / "vectors.S").write_text(assembly(conv(16, 8, (5, 5), (3, 3)), M55, tmp_path))
    zig_cc(["-c", "vectors.S", "-o", "vectors.o"], M55, tmp_path)


@pytest.mark.parametrize("name", ["mps2-an386", "stm32u585"])
def test_other_cores_have_none(tmp_path, name):
    assert "vmlava" not in assembly(conv(16, 8, (5, 5), (3, 3)), get_target(name), tmp_path)


def test_loops_of_floats_have_vectors_where_the_core_has_them(tmp_path):
    x = te.placeholder((64,), "float32", "x")
    y = te.compute((64,), lambda i: tvm.tirx.max(x[i], tvm.tirx.const(0.3, "float32")) * 3.0, "y")
    kernel = te.create_prim_func([x, y])
    text = assemble({"kernel": kernel}, M55, tmp_path)
    assert "vmul.f32\tq" in text and "vcmp.f32\tlt, q" not in text and "vcmp.f32\tle, q" not in text
    assert "\tq" not in assemble({"kernel": kernel}, INTEGERS, tmp_path)


@pytest.mark.parametrize(("dtype", "joined"), [("int8", False), ("float32", True)])
def test_products_of_quantising_kernels_are_rounded_on_their_own(tmp_path, dtype, joined):
    x, y = (te.placeholder((64,), "float32", name) for name in "xy")
    z = te.compute((64,), lambda i: (x[i] * 0.3 + y[i]).astype(dtype), "z")
    text = assemble({"kernel": te.create_prim_func([x, y, z])}, M55, tmp_path)
    assert ("vfma.f32\tq" in text) is joined and ("vmul.f32\tq" in text) is not joined and "vcmp" not in text


FUNCTION = "define void @{}(<4 x {}> %0) #0 {{\n{}\n}}\n"
ATTRIBUTES = 'attributes #0 = { "target-cpu"="cortex-m55" "target-features"="+mve.fp,+dsp" }\n'
NAN = "  %1 = fcmp uno <4 x float> %0, zeroinitializer"


@pytest.mark.parametrize(
    ("kind", "body", "vectors"),
    [
        ("i32", "  ret void", True),
        ("float", "  ret void", True),
        ("double", "  ret void", False),
        ("i32", NAN, False),
        ("i32", NAN + "\n  call <4 x i32> @llvm.arm.mve.vcvtn.v4i32.v4f32()", True),
        ("i32", "  %1 = fcmp uno float %0, 0.0", True),
        ("i32", "  %1 = fcmp olt <4 x half> %0, zeroinitializer", False),
    ],
)
def test_a_function_has_vectors_unless_it_asks_for_nan(kind, body, vectors):
    plain = FUNCTION.format("plain", "double", "  ret void")
    found = choose_vectors(FUNCTION.format("f", kind, body) + plain + ATTRIBUTES)
    number = "10000" if vectors else "0"
    assert f"@f(<4 x {kind}> %0) #{number} {{" in found and "@plain(<4 x double> %0) #0 {" in found
    assert 'attributes #0 = { "target-cpu"="cortex-m55" "target-features"="-mve.fp,-mve,+dsp" }' in found
    assert (
        'noimplicitfloat optsize "no-builtins"  "target-cpu"="cortex-m55" "target-features"="+mve.fp,+dsp" }' in found
    )


@pytest.mark.parametrize("one", ["%0", '%"a-b"', "%x.i", "splat (float 1.000000e+00)", "<float 1.0, float 2.0>"])
@pytest.mark.parametrize("other", ["%0", "zeroinitializer"])
def test_operands_of_comparisons_are_fenced(one, other):
    body = f"  %1 = fcmp nsz olt <4 x float> {one}, {other}"
    found = choose_vectors(FUNCTION.format("f", "float", body) + ATTRIBUTES)
    assert f"= call <4 x float> @llvm.arithmetic.fence.v4f32(<4 x float> {one})\n" in found
    assert f"= call <4 x float> @llvm.arithmetic.fence.v4f32(<4 x float> {other})\n" in found
    assert found.count(" fcmp nsz olt <4 x float> %fenced.") == 1
    assert found.endswith("declare <4 x float> @llvm.arithmetic.fence.v4f32(<4 x float>)\n")


def test_a_module_for_another_core_stays_as_it_is():
    code = FUNCTION.format("f", "i32", "  ret void") + ATTRIBUTES.replace("+mve.fp,", "")
    assert choose_vectors(code) is code
