"""Build packages by the tools they are for, and run their self tests: natively, and on an emulated board."""

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from passfit.package import write_package
from passfit.targets import emulator_command, get_target, how_to_run

pytestmark = [pytest.mark.slow, pytest.mark.tvm]
BOARD, HOST, M = "mps2-an386", "x86-64", "small_net"
BIN = Path(sys.executable).parent
needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed")
needs_host = pytest.mark.skipif(not how_to_run(get_target(HOST)).native, reason="the host cannot run x86-64-v3")
#: keys of zephyr/module.yml. Source: Zephyr, Modules (External projects), "Module yaml file description"
MODULE_KEYS = {"name": str, "build": dict, "samples": list}
BUILD_KEYS = {"cmake", "kconfig"}


#: processor, compiler and options by board: the C library of the last adds a linker script, and knows no zicsr
GNU = {
    BOARD: ("arm", "arm-none-eabi-gcc", "-mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16"),
    "mps3-an547": ("arm", "arm-none-eabi-gcc", "-mcpu=cortex-m55 -mthumb -mfloat-abi=hard"),
    "rv32-virt": ("riscv32", "riscv64-unknown-elf-gcc", "-march=rv32imc -mabi=ilp32 --specs=picolibc.specs"),
}


def run(*command: str, cwd: Path, **environment: str) -> str:
    done = subprocess.run(command, cwd=cwd, env=os.environ | environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def cmake(folder: Path, *options: str, **environment: str) -> None:
    run(
        str(BIN / "cmake"),
        "-S",
        ".",
        "-B",
        "build",
        "-G",
        "Ninja",
        f"-DCMAKE_MAKE_PROGRAM={BIN / 'ninja'}",
        *options,
        cwd=folder,
        **environment,
    )
    run(str(BIN / "cmake"), "--build", "build", cwd=folder)


@needs_cc
@needs_host
def test_the_cmake_package_runs_its_self_test_here_and_finds_a_wrong_output(tmp_path, result):
    write_package(result(HOST), "cmake", tmp_path, cases=3)
    cmake(tmp_path, "-DPASSFIT_SELFTEST=ON", "-DCMAKE_C_FLAGS=-Werror -Wconversion -pedantic")
    assert run(str(BIN / "ctest"), "--test-dir", "build", cwd=tmp_path)
    assert f"{M}: 0 elements differ" in run(f"build/{M}_example", cwd=tmp_path)
    recorded = tmp_path / "src" / f"{M}_selftest.c"
    # the first byte of the first case's int64
    recorded.write_text(re.sub(r"(output1\[CASES\]\[16\] = \{\s*\{\s*)\d+", r"\g<1>77", recorded.read_text()))
    cmake(tmp_path)
    done = subprocess.run([tmp_path / "build" / f"{M}_example"], capture_output=True, text=True)
    assert done.returncode == 1 and "1 elements differ" in done.stdout


@needs_cc
@needs_host
def test_a_project_takes_the_cmake_package_as_a_folder_of_its_own(tmp_path, result):
    write_package(result(HOST), "cmake", tmp_path / "model")
    (tmp_path / "main.c").write_text(f'#include "{M}.h"\nint main(void) {{ return {M}_run(); }}\n')
    (tmp_path / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.21)\nproject(own C)\nadd_subdirectory(model)\nadd_executable(own main.c)\ntarget_link_libraries(own PRIVATE {M})\n"
    )
    cmake(tmp_path)
    run("build/own", cwd=tmp_path)
    assert not list((tmp_path / "build").rglob("*selftest*"))


@needs_cc
@needs_host
def test_the_sources_of_a_library_are_built_here_by_the_compiler_of_this_machine(tmp_path, result):
    write_package(result(HOST), "cmake", tmp_path, cases=3, source=True)
    cmake(tmp_path, "-DPASSFIT_SELFTEST=ON", "-DCMAKE_C_FLAGS=-Werror -Wall -Wextra")
    assert f"{M}: 0 elements differ" in run(f"build/{M}_example", cwd=tmp_path)


@pytest.mark.parametrize(
    ("model", "name"),
    [("small-net", BOARD), ("lstm", BOARD), ("waves", "mps3-an547"), ("small-net", "rv32-virt"), ("lstm", "rv32-virt")],
)
def test_gnus_compiler_builds_the_sources_for_a_board_with_equal_results(tmp_path, result, model, name):
    processor, compiler, machine = GNU[name]
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    write_package(result(name, model), "cmake", tmp_path, cases=3, source=True)
    recorded = next((tmp_path / "src").glob("*_selftest.c"))
    exact = re.sub(r"(differ_float\w+\(.*), [^,]+\);", r"\1, 0.0f);", recorded.read_text())
    assert "u, 0.0f);" in exact
    recorded.write_text(exact)
    emulator = ";".join(emulator_command(get_target(name)))
    (tmp_path / "gcc.cmake").write_text(
        f"set(CMAKE_SYSTEM_NAME Generic)\nset(CMAKE_SYSTEM_PROCESSOR {processor})\nset(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)\n"
        f"set(CMAKE_C_COMPILER {compiler})\nset(CMAKE_ASM_COMPILER {compiler})\n"
        f'set(CMAKE_C_FLAGS_INIT "{machine} -Os -Wall -Wextra -Werror")\nset(CMAKE_ASM_FLAGS_INIT "{machine}")\n'
        f'set(CMAKE_CROSSCOMPILING_EMULATOR "{emulator}")\n'
    )
    cmake(tmp_path, "-DPASSFIT_SELFTEST=ON", "-DCMAKE_TOOLCHAIN_FILE=gcc.cmake")
    if how_to_run(get_target(name)).command is None:
        pytest.skip(how_to_run(get_target(name)).how)
    assert "100% tests passed" in run(str(BIN / "ctest"), "--test-dir", "build", cwd=tmp_path)


@pytest.mark.parametrize("source", [False, True])
@pytest.mark.parametrize("name", [BOARD, "rv32-virt"])
def test_the_cmake_package_of_a_board_is_an_image_whose_self_test_passes_under_its_emulator(
    tmp_path, result, name, source
):
    write_package(result(name), "cmake", tmp_path, source=source)
    cmake(tmp_path, "-DPASSFIT_SELFTEST=ON", f"-DPASSFIT_PYTHON={sys.executable}")
    assert (tmp_path / "build" / f"{M}_example.elf").is_file()
    if how_to_run(get_target(name)).command is None:
        pytest.skip(how_to_run(get_target(name)).how)
    assert "100% tests passed" in run(str(BIN / "ctest"), "--test-dir", "build", cwd=tmp_path)


@needs_cc
@needs_host
@pytest.mark.parametrize("source", [False, True])
def test_platformio_builds_the_example_and_the_self_test(tmp_path, result, source):
    """PlatformIO's registry is out of reach here: its builder is SCons of PyPI, its platform the compiler of this machine."""
    core = tmp_path / "core"
    own = {
        "packages/tool-scons/package.json": json.dumps({"name": "tool-scons", "version": scons_version()}),
        "packages/tool-scons/.piopm": json.dumps(
            {
                "type": "tool",
                "name": "tool-scons",
                "version": scons_version(),
                "spec": {"owner": "platformio", "id": None, "name": "tool-scons", "requirements": None, "uri": None},
            }
        ),
        "packages/tool-scons/scons.py": "import SCons.Script\nSCons.Script.main()\n",
        "platforms/native/platform.json": json.dumps(
            {"name": "native", "title": "Native", "description": "this machine", "version": "1.0.0", "packages": {}}
        ),
        "platforms/native/platform.py": "from platformio.public import PlatformBase\n\n\nclass NativePlatform(PlatformBase):\n    pass\n",
        "platforms/native/builder/main.py": "from SCons.Script import Default, DefaultEnvironment\nenv = DefaultEnvironment()\n"
        'env.Replace(PROGNAME="program", CC="cc", AS="cc", AR="ar", RANLIB="ranlib", LINK="cc", SIZETOOL=None)\nDefault(env.BuildProgram())\n',
    }
    for name, text in own.items():
        (core / name).parent.mkdir(parents=True, exist_ok=True)
        (core / name).write_text(text)
    write_package(result(HOST), "platformio", tmp_path / "package", source=source)
    example = tmp_path / "package" / "examples" / M
    quiet = {
        "PLATFORMIO_SETTING_ENABLE_TELEMETRY": "no",
        "PLATFORMIO_DISABLE_UPGRADE_CHECK": "true",
    }  # nothing is asked of the network
    run(str(BIN / "pio"), "run", cwd=example, PLATFORMIO_CORE_DIR=str(core), **quiet)
    assert f"{M}: done" in run(".pio/build/example/program", cwd=example)
    assert f"{M}: 0 elements differ" in run(".pio/build/selftest/program", cwd=example)


def scons_version() -> str:
    """Return the version of SCons that this PlatformIO asks for, in its own numbering."""
    from platformio.dependencies import get_core_dependencies

    return get_core_dependencies()["tool-scons"].lstrip("~")


@pytest.mark.parametrize("name", [BOARD, "x86-64"])
def test_platformio_reads_the_manifest(tmp_path, result, name):
    from platformio.package.manifest.parser import ManifestParserFactory
    from platformio.package.manifest.schema import ManifestSchema

    write_package(result(name), "platformio", tmp_path)
    read = ManifestSchema().load_manifest(ManifestParserFactory.new_from_dir(str(tmp_path)).as_dict())
    assert read["name"] == M and read["version"] == "1.0.0" and read["headers"] == [f"{M}.h"]
    ini = configparser.RawConfigParser()
    ini.read(tmp_path / "examples" / M / "platformio.ini")
    assert {"env:example", "env:selftest"} == set(ini.sections())


def test_zephyr_reads_the_module_and_its_options(tmp_path, result):
    import kconfiglib
    from ruamel.yaml import YAML

    write_package(result(BOARD), "zephyr", tmp_path)
    module = YAML(typ="safe").load(tmp_path / "zephyr" / "module.yml")
    assert {key: type(value) for key, value in module.items()} == MODULE_KEYS and set(module["build"]) == BUILD_KEYS
    # as scripts/zephyr_module.py looks for them
    assert (tmp_path / module["build"]["cmake"] / "CMakeLists.txt").is_file() and (
        tmp_path / module["build"]["kconfig"]
    ).is_file()
    assert all((tmp_path / sample).is_dir() for sample in module["samples"])
    core = "".join(f'config {name}\n\tbool "{name}"\n' for name in ("CPU_CORTEX_M4", "FPU", "FP_HARDABI"))
    (tmp_path / "Kconfig").write_text(f'{core}rsource "zephyr/Kconfig"\n')
    kconfig = kconfiglib.Kconfig(str(tmp_path / "Kconfig"))
    (tmp_path / "soc.conf").write_text("CONFIG_CPU_CORTEX_M4=y\n")
    option = kconfig.syms[M.upper()]
    kconfig.load_config(str(tmp_path / "samples" / M / "prj.conf"))
    assert option.str_value == "n"  # of another core
    kconfig.load_config(str(tmp_path / "soc.conf"), replace=False)
    assert option.str_value == "y" and kconfig.syms[f"{M.upper()}_SELFTEST"].str_value == "n" and not kconfig.warnings


def test_the_arduino_library_follows_its_specification(tmp_path, result):
    """Check rules of Arduino's Library specification 1.5, rev. 2.2: fields, and the places of sources and archives."""
    write_package(result(BOARD), "arduino", tmp_path)
    fields = dict(line.split("=", 1) for line in (tmp_path / "library.properties").read_text().splitlines())
    assert {
        "name",
        "version",
        "author",
        "maintainer",
        "sentence",
        "paragraph",
        "category",
        "url",
        "architectures",
    } <= set(fields) and all(fields.values())
    assert re.fullmatch(r"[A-Za-z0-9][\w .-]{0,62}", fields["name"], re.ASCII) and re.fullmatch(
        r"\d+\.\d+\.\d+", fields["version"]
    )
    assert (fields["category"], fields["precompiled"], fields["ldflags"]) == ("Data Processing", "true", f"-l{M}")
    assert (tmp_path / "src" / fields["includes"]).is_file()
    assert (tmp_path / "src/cortex-m4/fpv4-sp-d16-hard" / f"lib{M}.a").is_file()
    assert (tmp_path / "examples" / M / f"{M}.ino").is_file()
    # sources are compiled on every board, so the self test is behind its macro
    assert (tmp_path / "src" / f"{M}_selftest.c").read_text().count("#ifdef PASSFIT_SELFTEST") == 1


def test_sources_compile_as_arduino_compiles_a_library(tmp_path, result):
    """Compile all sources below src, with src among the folders of headers."""
    if shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("arm-none-eabi-gcc is not installed")
    write_package(result(BOARD), "arduino", tmp_path, source=True)
    assert "precompiled" not in (tmp_path / "library.properties").read_text()
    sources = [str(file) for file in sorted((tmp_path / "src").rglob("*.[cS]"))]
    flags = "-mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16 -Os -Wall -Wextra -Werror -DPASSFIT_SELFTEST -Isrc -c"
    run("arm-none-eabi-gcc", *flags.split(), *sources, cwd=tmp_path)
    assert {f"{M}_library.o", f"{M}_kernels.o", f"{M}_weights.o", f"{M}_selftest.o"} <= {
        file.name for file in tmp_path.glob("*.o")
    }


def test_the_cmsis_pack_names_its_files(tmp_path, result):
    """Check what the Open-CMSIS-Pack specification 1.7 requires of a package description."""
    write_package(result(BOARD), "cmsis-pack", tmp_path, "2.1.0")
    package = ElementTree.parse(tmp_path / f"passfit.{M}.pdsc").getroot()
    order = ["vendor", "name", "description", "url", "releases", "conditions", "components"]
    assert package.tag == "package" and [each.tag for each in package] == order and package.get("schemaVersion")
    assert package.findtext("vendor") + "." + package.findtext("name") == f"passfit.{M}"
    assert package.find("releases/release").get("version") == "2.1.0"
    condition = package.find("conditions/condition")
    assert condition.find("require").attrib == {"Dcore": "Cortex-M4", "Dfpu": "SP_FPU"}
    components = package.findall("components/component")
    assert [each.get("Csub") for each in components] == ["Library", "Self test"]
    assert {each.get("condition") for each in components} == {condition.get("id")}
    named = [file.get("name") for file in package.iter("file")]
    assert {f"lib/lib{M}.a", f"include/{M}.h", f"src/{M}_selftest.c"} <= set(named) and all(
        (tmp_path / name).is_file() for name in named
    )
