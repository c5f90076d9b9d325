"""Link programs for emulated targets without building a libc."""

import subprocess

import pytest

from passfit.errors import ToolchainError
from passfit.targets import bare_target, get_target, how_to_run
from passfit.verify import link_program as linking
from passfit.verify.link_program import link_program

PROGRAM = r"""
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
#include <math.h>

#define CHECK(what) do { if (!(what)) return __LINE__; } while (0)

int main(int count, char **words) {
  CHECK(count == 3 && !strncmp(words[2], "last", 5));
  CHECK(strtoll(words[1], NULL, 10) == -123456789012);
  struct timespec time = {0, -1};
  CHECK(!clock_gettime(CLOCK_MONOTONIC, &time) && time.tv_nsec >= 0 && time.tv_nsec < 1000000000);
  CHECK(sysconf(_SC_PAGESIZE) >= 4096);
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* old emulators refuse it */
  CHECK(open("missing", O_RDONLY) == -1);
  const int file = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
  CHECK(file >= 0 && write(file, "hello", 5) == 5 && lseek(file, 0, SEEK_END) == 5);
  char *mapped = mmap(NULL, 5, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  CHECK(mapped != MAP_FAILED);
  mapped[0] = 'J';
  char text[6] = "";
  CHECK(lseek(file, 0, SEEK_SET) == 0 && read(file, text, 5) == 5 && !strncmp(text, "Jello", 6));
  CHECK(strstr(text, "ll") == text + 2 && !strstr(text, "LL") && !close(file) && close(file) == -1);
  CHECK((int)(1000 * exp(count)) == 20085);
  CHECK(strlen("four") == 4);
  for (size_t at = 0; at < 9; ++at) {
    for (size_t bytes = 0; bytes < 40; ++bytes) {
      _Alignas(8) unsigned char from[64], to[64];
      for (int i = 0; i < 64; ++i) from[i] = (unsigned char)(3 * i), to[i] = 200;
      CHECK(memcpy(to + at, from + at, bytes) == to + at && memset(from + at, 255, bytes) == from + at);
      for (size_t i = 0; i < 64; ++i) {
        CHECK(to[i] == (i - at < bytes ? 3 * i : 200) && from[i] == (i - at < bytes ? 255 : 3 * i));
        from[i] = (unsigned char)i;
      }
      memmove(from + at, from + 4, bytes);
      for (size_t i = 0; i < 64; ++i) CHECK(from[i] == (i - at < bytes ? i - at + 4 : i));
    }
  }
  exit(0);
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rpi4", "beaglebone", "visionfive2"])
def test_the_small_libc_does_what_musl_does(name, tmp_path, monkeypatch):
    target = get_target(name)
    if not how_to_run(target).command:
        pytest.skip("qemu is not installed")
    linked_for = []
    zig_link = linking.zig_link
    monkeypatch.setattr(
        linking, "zig_link", lambda *args, **named: (zig_link(*args, **named), linked_for.append(named))
    )
    (tmp_path / "main.c").write_text(PROGRAM, encoding="ascii")
    link_program(["main.c"], "main", target, tmp_path)
    assert linked_for == [{"zig_target": bare_target(target)}], "it was linked with musl"
    command = [*how_to_run(target).command, "./main", "-123456789012", "last"]
    assert subprocess.run(command, cwd=tmp_path).returncode == 0, "the exit code is the line of a failed check"


def test_functions_of_musl_alone_are_musls(tmp_path, monkeypatch):
    target, links = get_target("visionfive2"), []

    def zig_link(arguments, target, folder, zig_target=None):
        links.append((zig_target, arguments[-1]))
        raise ToolchainError("undefined symbol: powf")

    monkeypatch.setattr(linking, "zig_link", zig_link)
    monkeypatch.setattr(
        linking, "zig_cc", lambda arguments, target, folder, zig_target=None: links.append((zig_target, arguments[-1]))
    )
    link_program(["main.c"], "main", target, tmp_path)
    assert links[-2:] == [("riscv64-linux-none", "main"), ("riscv64-linux-musl", "main")]


def test_threads_are_musls(tmp_path, monkeypatch):
    links = []
    monkeypatch.setattr(linking, "zig_cc", lambda arguments, target, folder, zig_target=None: links.append(zig_target))
    link_program(["main.c", "-lpthread"], "main", get_target("rpi4"), tmp_path)
    assert links == ["aarch64-linux-musl"]


@pytest.mark.parametrize("name, bare", [("rpi4", "aarch64-linux-none"), ("beaglebone", "arm-linux-eabihf")])
def test_without_a_libc_the_abi_is_the_same(name, bare):
    assert bare_target(get_target(name)) == bare
