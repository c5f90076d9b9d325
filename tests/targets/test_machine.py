"""Check the machine that schedule rules see."""

from dataclasses import replace

import pytest

from passfit.errors import ConfigError
from passfit.targets import Machine, get_target


@pytest.mark.parametrize(
    ("name", "machine"),
    [
        ("x86-64", Machine(8, 16, pmaddwd=True, keep_tap_loops=True, transposes=True)),
        ("x86-64-v4", Machine(16, 32, l1_bytes=40960, pmaddwd=True, transposes=True, stack=2048)),
        ("x86-64-vnni", Machine(16, 32, l1_bytes=40960, pmaddwd=True, dots=("vpdpbusd",), transposes=True, stack=2048)),
        ("rpi4", Machine(8, 16, by_element=True, smull_sadalp=True)),
        ("rpi5", Machine(8, 16, by_element=True, smull_sadalp=True, dots=("sdot",))),
        ("beaglebone", Machine(4, 16, by_element=True, smull_sadalp=True)),
        ("visionfive2", Machine(1, 20)),
        ("mps2-an386", Machine(1, 20, compact=True, dots=("smlad",))),
        ("mps3-an547", Machine(1, 20, compact=True, dots=("smlad",), vmlava=True, float_vectors=True)),
        ("stm32u585", Machine(1, 20, compact=True, dots=("smlad",))),
        ("rv32-virt", Machine(1, 20, compact=True, soft_floats=True)),
        ("rp2040", Machine(1, 20, compact=True, soft_floats=True)),
        ("bpi-f3", Machine(32, 8, by_element=True, lmul=4)),
    ],
)
def test_vectors_are_those_llvm_may_use(name, machine):
    assert get_target(name).machine == machine


@pytest.mark.parametrize(
    ("cpu", "features", "dots"),
    [
        ("x86-64-v3", ("+avxvnni",), True),
        ("x86-64-v4", (), False),
        ("cascadelake", (), True),
        ("skylake-avx512", (), False),
        ("x86-64", ("+avxvnni",), False),
    ],
)
def test_vnni_is_a_feature_or_a_processors_beside_pairs(cpu, features, dots):
    assert replace(get_target("x86-64"), cpu=cpu, features=features).machine.dots == (("vpdpbusd",) if dots else ())


@pytest.mark.parametrize(("features", "vmlava"), [(("+mve",), True), (("-mve.fp", "-mve"), False), ((), False)])
def test_vectors_of_bytes_are_a_feature(features, vmlava):
    assert replace(get_target("mps3-an547"), features=("+dsp", *features)).machine.vmlava is vmlava


@pytest.mark.parametrize(
    ("features", "lanes"),
    [
        (("+mve.fp",), {"float32": 4, "int32": 4, "int8": 16, "uint8": 16, "float16": 1, "int64": 1}),
        (("+mve",), {"float32": 1, "int32": 4, "int8": 16, "uint8": 16}),
        ((), {"float32": 1, "int32": 1, "int8": 1}),
    ],
)
def test_rules_write_vectors_of_the_dtypes_that_a_core_has(features, lanes):
    machine = replace(get_target("mps3-an547"), features=("+dsp", *features)).machine
    assert {dtype: machine.vectors_of(dtype).lanes for dtype in lanes} == lanes
    assert machine.vectors_of("float16") is machine


@pytest.mark.parametrize("machine", [Machine(16, 32), Machine(32, 8), Machine(64, 8), Machine(8, 16)])
def test_registers_are_bytes_that_tvm_leaves_on_the_stack(machine):
    assert machine.register_bytes < 1024


def test_a_target_with_threads_is_the_same_device():
    one, four = get_target("rpi4"), get_target("rpi4").with_threads(4)
    assert one.machine == Machine(by_element=True, smull_sadalp=True)
    assert four.machine == Machine(threads=4, by_element=True, smull_sadalp=True)
    assert one.with_threads(1) == one and one.machine.thread_bytes == 0
    assert four.machine.thread_bytes == 3 * 16384
    assert four.tvm_config() == one.tvm_config()


def test_the_weight_of_code_chooses_llvms_level_and_loops():
    one = get_target("rpi4")
    levels = {opt: one.with_opt(opt).llvm_config() for opt in ("size", "balanced", "speed")}
    assert [each.pop("opt-level") for each in levels.values()] == [2, 3, 3]
    assert get_target("x86-64").llvm_config()["opt-level"] == 2
    assert all(each == one.tvm_config() for each in levels.values())
    assert [one.with_opt(opt).machine.compact for opt in levels] == [True, False, False]
    assert one.opt == "balanced" and one.with_opt("balanced") == one
    with pytest.raises(ConfigError, match="opt is 'fast'"):
        one.with_opt("fast")


def test_checks_of_indices_change_no_fact_of_a_target():
    one = get_target("rpi4")
    chosen = {checks: one.with_index_checks(checks) for checks in ("fail", "clamp", "off")}
    assert [each.index_checks for each in chosen.values()] == list(chosen)
    assert all((each.machine, each.llvm_config()) == (one.machine, one.llvm_config()) for each in chosen.values())
    assert chosen["fail"] == one
    with pytest.raises(ConfigError, match="index-checks is 'on'"):
        one.with_index_checks("on")


@pytest.mark.parametrize("threads", [0, -1, 65])
def test_a_number_of_threads_that_cannot_be_is_refused(threads):
    with pytest.raises(ConfigError, match=f"threads is {threads}"):
        get_target("rpi4").with_threads(threads)


def test_registers_hold_that_many_floats():
    assert Machine().register_bytes == 512
    assert get_target("visionfive2").machine.register_bytes == 20 * 4


def test_a_short_vector_leaves_more_registers_where_they_are_joined():
    joined = get_target("bpi-f3").machine
    assert [joined.registers_of(lanes) for lanes in (32, 16, 8, 1)] == [8, 16, 16, 16]
    assert all(Machine().registers_of(lanes) == 16 for lanes in (8, 4, 1))


@pytest.mark.parametrize(("word", "lanes"), [("+zba", 16), ("+zvl64b", 16), ("+zvl512b", 64)])
def test_vectors_of_v_have_128_bits_or_what_is_said(word, lanes):
    assert replace(get_target("visionfive2"), features=("+v", word)).machine.lanes == lanes


def test_tvm_is_not_told_of_v_by_name():
    """The name would make it write loops for vectors of unknown length."""
    told = get_target("bpi-f3").tvm_config()["mattr"]
    assert "+v" not in told and {"+zve64d", "+zvl256b"} <= set(told)
