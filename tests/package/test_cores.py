"""Name every processor of the catalogue in the words of build systems."""

import re

import pytest

from passfit.package.cores import arduino_folder, cmsis_core, fpu_of, zephyr_core
from passfit.targets import get_target, load_catalogue

BARE = [target for target in load_catalogue().values() if target.bare]


@pytest.mark.parametrize("target", BARE, ids=lambda target: target.name)
def test_a_processor_with_hard_floats_has_a_unit_in_all_words(target):
    assert (fpu_of(target) is not None) == (target.float_abi == "hard")
    assert re.fullmatch(r"cortex-m\w+(/fpv[45](-sp)?-d16-hard)?|\w+", arduino_folder(target))
    if target.architecture == "thumb":
        assert re.fullmatch(r"Cortex-M(0\+|4|7|33|55)", cmsis_core(target)) and re.fullmatch(
            r"CPU_CORTEX_M(0PLUS|4|7|33|55)", zephyr_core(target)
        )


def test_the_words_are_those_of_known_boards():
    assert arduino_folder(get_target("stm32f446")) == "cortex-m4/fpv4-sp-d16-hard"
    assert (
        arduino_folder(get_target("rp2040")) == "cortex-m0plus" and arduino_folder(get_target("esp32-c3")) == "esp32c3"
    )
    assert fpu_of(get_target("stm32f746")) == ("fpv5-sp-d16", "SP_FPU") and fpu_of(get_target("stm32h743")) == (
        "fpv5-d16",
        "DP_FPU",
    )
