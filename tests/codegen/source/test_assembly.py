"""Assemble the sources of a library: its kernels are those of the archive, byte for byte, and nothing but them."""

from __future__ import annotations

from pathlib import Path

import pytest

from passfit.codegen import symbol
from passfit.codegen.elf import read_object
from passfit.codegen.source.assembly import assemble
from passfit.targets import get_target, zig_cc

from .. import models

pytestmark = [pytest.mark.slow, pytest.mark.tvm]


def functions(path: Path) -> dict[str, bytes]:
    """Return the code of each function of an object: assemblers fill the gaps between functions in their own ways."""
    content = path.read_bytes()
    found = read_object(content)
    defined = {each.name: each for each in found.symbols if each.section and each.name in found.functions()}
    starts = {name: found.sections[each.section].offset + (each.value & ~1) for name, each in defined.items()}
    return {name: content[starts[name] : starts[name] + each.size] for name, each in defined.items()}


@pytest.mark.parametrize("make", [models.matmul_exp, models.comparison, models.whole_numbers])
@pytest.mark.parametrize("name", ["x86-64", "rpi4", "beaglebone", "visionfive2", "mps2-an386", "rp2040", "rv32-virt"])
def test_assembled_kernels_are_those_of_the_object(tmp_path, make, name):
    target, model = get_target(name), make()
    kernels = {symbol("m", kernel): function for kernel, function in model.kernels.items()}
    models.build_object(model.kernels, "m", target, tmp_path / "object.o")
    text = assemble(kernels, target, tmp_path)
    (tmp_path / "kernels.S").write_text(text, encoding="ascii")
    zig_cc(["-g0", "-c", "kernels.S", "-o", "assembled.o"], target, tmp_path)
    expected = functions(tmp_path / "object.o")
    assert kernels.keys() <= expected.keys() and functions(tmp_path / "assembled.o") == expected
    left = [
        each.name
        for each in read_object((tmp_path / "assembled.o").read_bytes()).sections
        if "debug" in each.name or "exidx" in each.name
    ]
    assert not left and text == assemble(kernels, target, tmp_path)
