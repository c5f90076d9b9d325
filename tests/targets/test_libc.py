from passfit.targets import get_target, libc, program_libc

TARGET = get_target("x86-64")


def test_programs_for_an_emulator_are_static():
    assert program_libc(get_target("visionfive2")) == ("riscv64-linux-musl", ["-static"])


def test_without_glibcs_loader_programs_are_static(monkeypatch):
    monkeypatch.setattr(libc, "_LOADERS", {})
    assert program_libc(TARGET) == (TARGET.zig_target, ["-static"])
