import pytest

from passfit.targets import get_target, toolchain
from passfit.verify import libc_aside as aside
from passfit.verify.libc_aside import libc_aside
from passfit.verify.runner import link_program

TARGET = get_target("x86-64")


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(aside, "_started", set())


@pytest.fixture
def started(monkeypatch):
    """Return the processes that `libc_aside` starts."""
    processes, start = [], aside.start_zig_cc
    monkeypatch.setattr(aside, "start_zig_cc", lambda *args, **named: processes.append(start(*args, **named)) or processes[-1])
    return processes


@pytest.mark.slow
@pytest.mark.nightly
def test_a_link_finds_the_libc_built_aside(started, tmp_path, monkeypatch):
    """Build musl in a cache of its own, a minute: the link adds none."""
    target, cache = get_target("rpi4"), tmp_path / "cache"
    monkeypatch.setenv(toolchain._CACHE, str(cache))
    (tmp_path / "x.c").write_text("int main(void) { return 0; }\n")
    with libc_aside(target):
        assert [process.wait() for process in started] == [0]
        built = sorted(cache.glob("o/*/libc.a"))
        link_program(["x.c"], "x", target, tmp_path)
        assert built and built == sorted(cache.glob("o/*/libc.a"))


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
