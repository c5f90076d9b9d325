import os
from pathlib import Path

import pytest

from passfit.targets import get_target, libc, libc_aside, program_libc, toolchain
from passfit.verify.runner import link_program

TARGET = get_target("x86-64")


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(libc, "_started", set())


@pytest.fixture
def started(monkeypatch):
    """Return the processes that `libc_aside` starts."""
    processes, start = [], libc.start_zig_cc
    monkeypatch.setattr(libc, "start_zig_cc", lambda *args, **named: processes.append(start(*args, **named)) or processes[-1])
    return processes


@pytest.mark.slow
@pytest.mark.parametrize("target", [TARGET, get_target("rpi4")], ids=lambda target: target.name)
def test_a_link_finds_the_libc_built_aside(target, started, tmp_path):
    (tmp_path / "x.c").write_text("int main(void) { return 0; }\n")
    cache = Path(toolchain._cache(*map(os.environ.get, (toolchain._CACHE, "XDG_CACHE_HOME", "HOME"))))
    with libc_aside(target):
        assert [process.wait() for process in started] == [0]
        built = {*cache.glob("o/*/libc.a"), *cache.glob("o/*/libc_nonshared.a")}
        link_program(["x.c"], "x", target, tmp_path)
        assert built == {*cache.glob("o/*/libc.a"), *cache.glob("o/*/libc_nonshared.a")} != set()


def test_the_builds_end_with_the_block(started):
    with libc_aside(TARGET):
        pass
    assert started and all(process.returncode is not None for process in started)


def test_a_second_block_starts_nothing(started):
    for _ in range(2):
        with libc_aside(TARGET):
            pass
    assert len(started) == 1


def test_a_missing_toolchain_is_no_fault_of_the_block(monkeypatch):
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None)
    entered = False
    with libc_aside(TARGET):
        entered = True
    assert entered


def test_programs_for_an_emulator_are_static():
    assert program_libc(get_target("visionfive2")) == ("riscv64-linux-musl", ["-static"])


def test_without_glibcs_loader_programs_are_static(monkeypatch):
    monkeypatch.setattr(libc, "_LOADERS", {})
    assert program_libc(TARGET) == (TARGET.zig_target, ["-static"])
