"""What rules are told of a processor."""

import pytest

from passfit.targets import Machine, get_target


@pytest.mark.parametrize(
    ("name", "machine"),
    [
        ("x86-64", Machine(8, 16)),
        ("rpi4", Machine(8, 16)),
        ("beaglebone", Machine(4, 16)),
        ("visionfive2", Machine(1, 20)),
    ],
)
def test_vectors_are_those_llvm_may_use(name, machine):
    assert get_target(name).machine == machine


def test_registers_hold_that_many_floats():
    assert Machine().register_bytes == 512
    assert get_target("visionfive2").machine.register_bytes == 20 * 4
