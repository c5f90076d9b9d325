"""Checks of single kernels: where they stand, what they leave alone."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.tvm


def te_kernel(build):
    """The kernel of the operands and the result that `build` returns."""
    from tvm import te

    return te.create_prim_func(build(te))


def gathered(te, index=lambda i, n: i[n]):
    x, i = te.placeholder((5, 64), name="x"), te.placeholder((3,), dtype="int64", name="i")
    return [x, i, te.compute((3, 64), lambda n, j: x[index(i, n), j], name="y")]


def guarded(kernel, mode="fail", constants=None):
    from passfit.codegen.checks.guard_kernel import guard_kernel

    return guard_kernel(kernel, mode, constants or {})


def text(kernel) -> str:
    return kernel.script(show_meta=False)


def test_a_check_reads_each_index_once_before_anything_is_written():
    lines = text(guarded(te_kernel(gathered)).kernel).splitlines()
    (check,) = [number for number, line in enumerate(lines) if "tvm_throw_last_error" in line]
    assert all(check < number for number, line in enumerate(lines) if "T.writes" in line)
    assert [line.strip() for line in lines[check - 2 : check]] == [
        "for n in range(3):",
        "if not (T.int64(0) <= i[n] and i[n] <= T.int64(4)):",
    ]


def test_clamping_adds_no_statement():
    kernel = text(guarded(te_kernel(gathered), "clamp").kernel)
    assert "x[T.max(T.min(i[v_n], T.int64(4)), T.int64(0)), v_j]" in kernel and "throw" not in kernel


def test_kernels_that_prove_their_indices_are_left_alone():
    from tvm import tirx

    least, most = tirx.const(0, "int64"), tirx.const(4, "int64")
    forms = [
        lambda i, n: tirx.max(tirx.min(i[n], most), least),  # the model clamps
        lambda i, n: tirx.floormod(i[n], tirx.const(5, "int64")),
        lambda i, n: n,
    ]
    for form in forms:
        kernel = te_kernel(lambda te, form=form: gathered(te, form))
        for mode in ("fail", "clamp"):
            assert guarded(kernel, mode).kernel.same_as(kernel) and not guarded(kernel, mode).reasons


def test_a_condition_that_keeps_the_index_in_range_is_enough():
    from tvm import tirx

    def build(te):
        x, i = te.placeholder((5,), name="x"), te.placeholder((3,), dtype="int64", name="i")
        return [
            x,
            i,
            te.compute((3,), lambda n: tirx.if_then_else(tirx.all(i[n] >= 0, i[n] < 5), x[i[n]], 0.0), name="y"),
        ]

    kernel = te_kernel(build)
    assert guarded(kernel).kernel.same_as(kernel)


def test_constant_indices_in_range_need_no_check_and_others_do():
    kernel = te_kernel(gathered)
    index = kernel.params[1]
    assert guarded(kernel, constants={index: (0, 4)}).kernel.same_as(kernel)
    assert guarded(kernel, constants={index: (-1, 4)}).reasons
    only_low = text(guarded(kernel, constants={index: (-1, 4)}).kernel)
    assert "if not T.int64(0) <= i[n]:" in only_low


def test_an_index_computed_in_the_kernel_is_checked_after_it_is_computed():
    from tvm import te, tirx

    x, i = te.placeholder((5,), name="x"), te.placeholder((3,), dtype="int64", name="i")
    twice = te.compute((3,), lambda n: i[n] * tirx.const(2, "int64"), name="twice")
    kernel = te.create_prim_func([x, i, te.compute((3,), lambda n: x[twice[n]], name="y")])
    lines = text(guarded(kernel).kernel).splitlines()
    computed = next(number for number, line in enumerate(lines) if "twice[v_n] = " in line)
    check = next(number for number, line in enumerate(lines) if "throw" in line)
    assert computed < check and "twice[n]" in lines[check - 1]


def test_a_selected_load_is_read_only_where_it_is_selected():
    from tvm import te, tirx

    x, i = te.placeholder((5,), name="x"), te.placeholder((3,), dtype="int64", name="i")
    y = te.compute((3,), lambda n: tirx.Select(i[n] > 2, x[i[n]], tirx.const(0.0, "float32")), name="y")
    kernel = text(guarded(te.create_prim_func([x, i, y])).kernel)
    assert "T.if_then_else(i[v_n] > T.int64(2)" in kernel.replace("T.int64(2) < i[v_n]", "i[v_n] > T.int64(2)")


def test_without_checks_marked_values_are_as_they_were():
    from tvm import te

    from passfit.codegen.checks.guard_kernel import drop_checks
    from passfit.frontend.relax.checked import checked

    i = te.placeholder((3,), dtype="int64", name="i")
    marked = te.create_prim_func(
        [i, te.compute((3,), lambda n: checked(i(n), 0, 4, "a length is out of range") + 1, name="y")]
    )
    assert guarded(marked).reasons == ("a length is out of range",)
    assert guarded(marked, "off").reasons == ("a length is out of range",)
    for plain in (drop_checks(marked), guarded(marked, "off").kernel):
        assert "passfit" not in text(plain) and "y[v_n] = i[v_n] + T.int64(1)" in text(plain)


@pytest.mark.parametrize("mode", ["fail", "clamp", "off"])
def test_places_that_a_kernel_counts_itself_are_no_data(mode):
    """Turn a tensor in place along the cycles of a permutation: its places are in a buffer, and no input moves them."""
    from passfit.kernels.rewrite.transpose_in_place import transpose_in_place

    kernel = transpose_in_place([3, 4, 20], 1, "float32", back=False)
    assert guarded(kernel, mode).kernel is kernel


def test_a_kernel_that_cannot_be_understood_costs_its_plan(monkeypatch):
    from dataclasses import dataclass

    from passfit.codegen.checks import guard_kernels as room
    from passfit.program import Program
    from passfit.tir.index_grid import NoMatch

    @dataclass(frozen=True)
    class Lowered:
        kernels: dict
        weights: tuple = ()
        program: Program = Program("none", (), (), (), (), (), ())

    def unknown(*_):
        raise NoMatch("While")

    monkeypatch.setattr(room, "guard_kernel", unknown)
    lowered = Lowered({"k": te_kernel(gathered)})
    with pytest.raises(NotImplementedError, match="indices of kernel 'k' cannot be checked: it has While"):
        room.guard_kernels(lowered, "fail")
    assert room.guard_kernels(lowered, "off")[1] == {"k": ("an index is out of range",)}
