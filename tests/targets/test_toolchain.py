import os
from pathlib import Path

import pytest

from passfit.errors import ToolchainError
from passfit.targets import get_target, toolchain, zig_ar, zig_cc, zig_link

TARGET = get_target("x86-64")


def test_a_missing_toolchain_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ToolchainError, match="pip install ziglang"):
        zig_cc(["-c", "x.c"], TARGET, tmp_path)


@pytest.mark.slow
def test_a_failure_carries_the_compilers_last_lines(tmp_path):
    (tmp_path / "x.c").write_text("int x = ;\n")
    with pytest.raises(ToolchainError, match="expected expression"):
        zig_cc(["-c", "x.c"], TARGET, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("leaky", toolchain._LEAKY[:3])
def test_the_users_include_paths_do_not_leak_in(tmp_path, monkeypatch, leaky):
    (tmp_path / "leak").mkdir()
    (tmp_path / "leak" / "stdint.h").write_text("#error leaked\n")
    (tmp_path / "x.c").write_text("#include <stdint.h>\nuint8_t x;\n")
    monkeypatch.setenv(leaky, str(tmp_path / "leak"))
    zig_cc(["-c", "x.c", "-o", "x.o"], TARGET, tmp_path)


@pytest.mark.slow
def test_archives_of_the_same_members_are_the_same_bytes(tmp_path):
    made = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        (folder / "x.c").write_text("int x;\n")
        zig_cc(["-c", "x.c", "-g0", "-o", "x.o"], TARGET, folder)
        zig_ar("libx.a", ["x.o"], folder)
        made.append((folder / "libx.a").read_bytes())
    assert made[0] == made[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "source, runtimes",
    [
        ("int f(int a) { return a + 1; }", ["none"]),
        ("__int128 f(__int128 a) { return a / 7; }", ["none", "compiler-rt"]),
    ],
)
def test_the_compilers_runtime_is_linked_only_where_a_symbol_needs_it(tmp_path, monkeypatch, source, runtimes):
    asked = []
    compile_ = toolchain.zig_cc
    monkeypatch.setattr(
        toolchain, "zig_cc", lambda args, *more, **named: asked.append(args) or compile_(args, *more, **named)
    )
    (tmp_path / "x.c").write_text(f"{source}\n")
    options = ["-shared", "-fPIC", "-nostdlib", "-Wl,-z,defs", "x.c", "-o", "x.so"]
    zig_link(options, TARGET, tmp_path)
    assert (tmp_path / "x.so").exists() and [args[-1] for args in asked] == [f"-rtlib={each}" for each in runtimes]


@pytest.mark.slow
def test_a_link_without_the_compilers_runtime_builds_none(tmp_path, monkeypatch):
    monkeypatch.setenv(toolchain._CACHE, str(tmp_path / "cache"))
    (tmp_path / "x.c").write_text("int f(int a) { return a + 1; }\n")
    zig_link(["-shared", "-fPIC", "-nostdlib", "-Wl,-z,defs", "x.c", "-o", "x.so"], TARGET, tmp_path)
    assert (tmp_path / "x.so").exists() and not list((tmp_path / "cache").rglob("lib*_rt.a"))


@pytest.mark.slow
def test_a_failed_link_names_the_missing_symbol(tmp_path):
    (tmp_path / "x.c").write_text("int g(void);\nint f(void) { return g(); }\n")
    with pytest.raises(ToolchainError, match="undefined symbol: g"):
        zig_link(["-shared", "-fPIC", "-Wl,-z,defs", "x.c", "-o", "x.so"], TARGET, tmp_path)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Return zig's cache folder, given its variables; TMPDIR is a folder of its own."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    toolchain._cache.cache_clear()
    yield toolchain._cache
    toolchain._cache.cache_clear()


def test_the_cache_is_where_zig_itself_would_have_it(cache, tmp_path):
    assert cache(None, None, str(tmp_path / "home")) == str(tmp_path / "home/.cache/zig")
    assert cache(None, str(tmp_path / "caches"), str(tmp_path / "home")) == str(tmp_path / "caches/zig")
    assert cache(str(tmp_path / "own"), None, None) == str(tmp_path / "own")


@pytest.mark.parametrize("home", [None, "", "/proc", "/proc/none"])
def test_without_a_home_to_write_to_the_cache_is_below_tmpdir(cache, tmp_path, home):
    folder = cache(None, None, home)
    assert Path(folder).parent == tmp_path / "tmp" and Path(folder).stat().st_mode & 0o077 == 0


def test_a_cache_that_the_user_chose_is_not_replaced(cache):
    with pytest.raises(ToolchainError, match="'/proc/zig'. Set ZIG_GLOBAL_CACHE_DIR"):
        cache("/proc/zig", None, None)


def test_the_folder_of_somebody_else_is_no_cache(cache, tmp_path):
    (tmp_path / "theirs").mkdir()
    (tmp_path / "tmp" / f"passfit-zig-{os.geteuid()}").symlink_to(tmp_path / "theirs")
    with pytest.raises(ToolchainError, match="Set ZIG_GLOBAL_CACHE_DIR"):
        cache(None, None, None)
