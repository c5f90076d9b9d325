from dataclasses import replace

import pytest

from passfit.errors import ToolchainError
from passfit.targets import emulator, get_target, how_to_run

V3 = "avx avx2 bmi1 bmi2 f16c fma abm movbe xsave cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3".split()
BASE = "cx8 cmov fxsr mmx sse sse2".split()


@pytest.fixture
def host(monkeypatch):
    """Pretend to be a machine with the given cpu and programs."""

    def pretend(machine: str, flags: list[str] = (), parts: list[str] = (), programs: list[str] = (), system="Linux"):
        monkeypatch.setattr(emulator.platform, "machine", lambda: machine)
        monkeypatch.setattr(emulator.platform, "system", lambda: system)
        monkeypatch.setattr(emulator, "_host_cpu", lambda: (frozenset(flags), frozenset(parts)))
        monkeypatch.setattr(emulator.shutil, "which", lambda name: f"/bin/{name}" if name in programs else None)

    return pretend


def test_the_same_architecture_with_all_features_runs_natively(host):
    host("x86_64", BASE + V3)
    assert how_to_run(get_target("x86-64")) == emulator.Runner([], "native")


def test_a_host_that_lacks_a_feature_emulates(host):
    host("x86_64", BASE, programs=["qemu-x86_64-static"])
    assert how_to_run(get_target("x86-64")).how == "qemu-x86_64"


def test_a_feature_beyond_the_level_counts(host):
    host("x86_64", BASE + V3)
    assert not how_to_run(replace(get_target("x86-64"), features=("+avx512f",))).native
    assert how_to_run(replace(get_target("x86-64"), features=("+avx2", "-fma"))).native
    assert not how_to_run(replace(get_target("x86-64"), features=("+avx512vnni",))).native


def test_an_arm_host_runs_its_own_cores_only(host):
    host("aarch64", parts=["cortex-a72"])
    assert how_to_run(get_target("rpi4")).native
    assert not how_to_run(get_target("rpi-zero2")).native


def test_a_riscv_host_is_not_trusted_with_vectors(host):
    host("riscv64")
    assert how_to_run(get_target("visionfive2")).native and not how_to_run(get_target("bpi-f3")).native


@pytest.mark.parametrize("program", ["qemu-arm-static", "qemu-arm"])
def test_either_name_of_an_emulator_is_found(host, program):
    host("x86_64", programs=[program])
    runner = how_to_run(get_target("beaglebone"))
    assert runner.how == "qemu-arm" and runner.command == [f"/bin/{program}", "-cpu", "cortex-a8"]


@pytest.mark.parametrize("machine", ["x86_64", "arm", "riscv32"])
def test_an_image_never_runs_natively(host, machine):
    host(machine, programs=["qemu-system-riscv32"])
    runner = how_to_run(get_target("esp32-c3"))
    assert runner.how == "qemu-system-riscv32 as rv32-virt"
    assert runner.command[:3] == ["/bin/qemu-system-riscv32", "-M", "virt"] and runner.command[-1] == "-kernel"


@pytest.mark.parametrize(
    ("name", "package"), [("rpi4", "qemu-user-static"), ("rp2040", "qemu-system-arm"), ("esp32-c3", "qemu-system-misc")]
)
def test_each_emulator_has_its_package(host, name, package):
    host("x86_64")
    assert how_to_run(get_target(name)).how.endswith(f"apt-get install {package}")


def test_a_missing_emulator_says_what_to_install(host):
    host("x86_64")
    runner = how_to_run(get_target("rpi4"))
    assert runner.command is None and not runner.native
    assert runner.how.startswith("not-run: ") and "qemu-user-static" in runner.how


def test_a_target_without_emulator_does_not_run(host):
    host("x86_64")
    assert how_to_run(replace(get_target("rpi4"), emulator=None)).how.startswith("not-run: ")


def test_only_linux_runs_linux_programs(host):
    host("x86_64", BASE + V3, system="Darwin")
    assert how_to_run(get_target("x86-64")).command is None


def test_a_runner_has_words_or_says_why_not(host):
    host("x86_64", BASE + V3)
    assert how_to_run(get_target("x86-64")).words == []
    host("x86_64", programs=["qemu-arm"])
    assert how_to_run(get_target("beaglebone")).words == ["/bin/qemu-arm", "-cpu", "cortex-a8"]
    host("x86_64")
    with pytest.raises(ToolchainError, match="not-run: qemu-arm is not installed"):
        _ = how_to_run(get_target("beaglebone")).words
