import pytest

from passfit.errors import ToolchainError
from passfit.targets import get_target, toolchain, zig_ar, zig_cc

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
