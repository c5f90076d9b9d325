"""Build components of ESP-IDF: by its component manager, and by functions as its build system documents them."""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path

import pytest

from passfit.package import write_package
from passfit.targets import get_target, how_to_run

from .test_builds import BIN, cmake, run

pytestmark = [pytest.mark.slow, pytest.mark.tvm]
BOARD, M = "rv32-virt", "small_net"
#: what ESP-IDF's project.cmake does with a component and `main`, for a board that is emulated here. Source: ESP-IDF, Build System:
#: idf_component_register, "Prebuilt Libraries within Components", and "Configuration Variables"
PROJECT = """
macro(project name)
  _project(${name} C ASM)
  set(CONFIG_SMALL_NET_SELFTEST y)
  include_directories($ENV{IDF_PATH}/libc)
  add_subdirectory(../.. component)
  add_subdirectory(main main)
  target_link_libraries(__idf_main PUBLIC __idf_component)
  set(board $ENV{IDF_PATH}/board)
  add_executable(app ${board}/startup.c $ENV{IDF_PATH}/port.c)
  target_compile_options(app PRIVATE -ffreestanding -fno-builtin)
  target_link_options(app PRIVATE -Wl,-T,${board}/link.ld -Wl,--entry=reset -Wl,--gc-sections -static -nostartfiles)
  set_target_properties(app PROPERTIES SUFFIX .elf)
  target_link_libraries(app PRIVATE __idf_main)
  enable_testing()
  add_test(NAME app COMMAND app)
endmacro()
macro(idf_component_register)
  cmake_parse_arguments(_ "" "" "SRCS;INCLUDE_DIRS" ${ARGN})
  get_filename_component(COMPONENT_LIB "${CMAKE_CURRENT_BINARY_DIR}" NAME)
  set(COMPONENT_LIB __idf_${COMPONENT_LIB})
  if(__SRCS)
    add_library(${COMPONENT_LIB} STATIC ${__SRCS})
    target_include_directories(${COMPONENT_LIB} PUBLIC ${__INCLUDE_DIRS})
  else()
    add_library(${COMPONENT_LIB} INTERFACE)
    target_include_directories(${COMPONENT_LIB} INTERFACE ${__INCLUDE_DIRS})
  endif()
endmacro()
function(add_prebuilt_library name path)
  add_library(${name} STATIC IMPORTED GLOBAL)
  set_property(TARGET ${name} PROPERTY IMPORTED_LOCATION ${CMAKE_CURRENT_LIST_DIR}/${path})
endfunction()
"""
#: printf takes the number of elements that differ, and main ends with it
PORT = """
#include <stdarg.h>
void app_main(void);
int main(void);
int printf(const char *format, ...);
static long printed = -1;
int printf(const char *format, ...) {
  va_list values;
  (void)format;
  va_start(values, format);
  printed = va_arg(values, long);
  va_end(values);
  return 0;
}
int main(void) {
  app_main();
  return printed != 0;
}
"""


@pytest.mark.parametrize("source", [False, True])
def test_the_example_of_a_component_runs_its_self_test(tmp_path, result, source):
    package, idf = tmp_path / "package", tmp_path / "idf"
    write_package(result(BOARD), "cmake", idf, source=True)  # board and toolchain
    write_package(result(BOARD), "esp-idf", package, source=source)
    (idf / "tools" / "cmake").mkdir(parents=True)
    (idf / "tools" / "cmake" / "project.cmake").write_text(PROJECT)
    (idf / "port.c").write_text(PORT)
    (idf / "libc").mkdir()
    (idf / "libc" / "stdio.h").write_text("int printf(const char *format, ...);\n")
    options = (f"-DCMAKE_TOOLCHAIN_FILE={idf / 'cmake' / 'zig.cmake'}", f"-DPASSFIT_PYTHON={sys.executable}")
    cmake(example := package / "examples" / M, *options, IDF_PATH=str(idf))
    if how_to_run(get_target(BOARD)).command is None:
        pytest.skip(how_to_run(get_target(BOARD)).how)
    assert "100% tests passed" in run(str(BIN / "ctest"), "--test-dir", "build", cwd=example)


def test_the_component_manager_packs_the_component(tmp_path, result):
    pytest.importorskip("idf_component_tools", reason="the extra `test` is not installed")
    write_package(
        result(BOARD), "esp-idf", tmp_path, "1.2.3", author="Ada <ada@example.org>", url="https://example.org/net"
    )
    run(sys.executable, "-m", "idf_component_manager", "component", "pack", "--name", M, cwd=tmp_path)
    with tarfile.open(tmp_path / "dist" / f"{M}_1.2.3.tgz") as packed:
        held = {Path(name).as_posix() for name in packed.getnames()}
    assert {"CMakeLists.txt", "Kconfig", f"include/{M}.h", f"lib/lib{M}.a", f"examples/{M}/main/main.c"} <= held


def test_the_option_of_the_self_test_is_read_by_kconfig(tmp_path, result):
    import kconfiglib

    write_package(result(BOARD), "esp-idf", tmp_path)
    kconfig = kconfiglib.Kconfig(str(tmp_path / "Kconfig"))
    assert kconfig.syms["SMALL_NET_SELFTEST"].str_value == "n" and not kconfig.warnings
