"""Assemble the sources of a library: its kernels are those of the archive, byte for byte, and nothing but them."""

from __future__ import annotations

from pathlib import Path

import pytest

from passfit.codegen import symbol
from passfit.codegen.assembly import assemble
from passfit.codegen.elf import read_object
from passfit.targets import get_target, zig_cc

from . import models

pytestmark = [pytest.mark.slow, pytest.mark.tvm]


def functions(path: Path) -> dict[str, bytes]:
    """Return the content of each section of a function in an object."""
    content = path.read_bytes()
    sections = read_object(content).sections
    return {each.name: content[each.offset : each.offset + each.size] for each in sections if each.name.startswith(".text.")}


@pytest.mark.parametrize("make", [models.matmul_exp, models.comparison, models.whole_numbers])
@pytest.mark.parametrize("name", ["x86-64", "rpi4", "beaglebone", "visionfive2", "mps2-an386", "rp2040", "rv32-virt"])
def test_assembled_kernels_are_those_of_the_object(tmp_path, make, name):
    target, model = get_target(name), make()
    kernels = {symbol("m", kernel): function for kernel, function in model.kernels.items()}
    models.build_object(model.kernels, "m", target, tmp_path / "object.o")
    text = assemble(kernels, target, tmp_path)
    (tmp_path / "kernels.S").write_text(text, encoding="ascii")
    zig_cc(["-g0", "-c", "kernels.S", "-o", "assembled.o"], target, tmp_path)
    expected, found = functions(tmp_path / "object.o"), functions(tmp_path / "assembled.o")
    assert {f".text.{kernel}" for kernel in kernels} <= expected.keys() and found == expected
    left = [each.name for each in read_object((tmp_path / "assembled.o").read_bytes()).sections if "debug" in each.name or "exidx" in each.name]
    assert not left and text == assemble(kernels, target, tmp_path)
