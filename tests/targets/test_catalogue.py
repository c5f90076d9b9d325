from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from passfit.errors import TargetError
from passfit.targets import Target, emulated_board, get_target, load_catalogue
from passfit.targets.memory import select_kind

KIB = 1024


def repo(tmp_path: Path, text: str) -> Path:
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    return tmp_path


def test_the_catalogue_has_the_promised_devices():
    promised = {
        "x86-64",
        "x86-64-v4",
        "x86-64-vnni",
        "rpi4",
        "rpi-zero2",
        "rpi5",
        "beaglebone",
        "visionfive2",
        "bpi-f3",
    }
    assert promised <= set(load_catalogue())


@pytest.mark.parametrize("target", load_catalogue().values(), ids=lambda t: t.name)
def test_every_entry_is_complete(target: Target):
    assert target.ram > 0 and target.flash > 0
    assert target.source and target.description
    assert target.emulator or "no emulator" in target.source
    assert target.weights in ("in-place", "copied")
    assert target.zig_target.split("-")[0] == target.architecture
    assert target.tvm_config()["mtriple"] == target.triple
    assert target.bare == bool(target.memories) == (target.emulator or "").startswith("qemu-system")


@pytest.mark.parametrize("target", [each for each in load_catalogue().values() if each.bare], ids=lambda t: t.name)
def test_memories_of_a_board_do_not_overlap_and_its_emulated_board_runs_them(target: Target):
    places = sorted((each.start, each.start + each.size) for each in target.memories)
    assert all(end <= start for (_, end), (start, _) in pairwise(places))
    assert {kind: sum(each.size for each in select_kind(target.memories, kind)) for kind in ("ram", "flash")} == {
        "ram": target.ram,
        "flash": target.flash,
    }
    board = emulated_board(target)
    places = sorted((each.start, each.start + each.size) for each in board.memories)
    assert all(end <= start for (_, end), (start, _) in pairwise(places))
    assert [(each.name, each.kind) for each in board.memories] == [(each.name, each.kind) for each in target.memories]
    assert emulated_board(board).memories == board.memories and board.emulator == target.emulator
    assert (board.triple, board.cpu, board.features) == (target.triple, target.cpu, target.features)
    assert target.opt == "size" and target.machine.compact


def test_the_toolchain_gets_the_cores_floating_point():
    assert get_target("mps2-an386").zig_cpu == "cortex_m4+dsp+vfp4d16sp"
    assert get_target("stm32f746").zig_cpu == "cortex_m7+dsp+fp_armv8d16sp-fp64"
    board = get_target("mps3-an547")
    assert board.zig_cpu == "cortex_m55-mve_fp-mve+dsp+fp_armv8d16"  # vectors are for kernels of their own
    assert replace(board, features=("+mve", "+dsp")).zig_cpu == "cortex_m55-mve_fp-mve+dsp"


def test_hard_float_and_abi_reach_tvm():
    assert get_target("beaglebone").tvm_config()["mfloat-abi"] == "hard"
    assert get_target("beaglebone").tvm_config()["mattr"] == ["+neon"]
    assert get_target("visionfive2").tvm_config()["mabi"] == "lp64d"
    assert "mabi" not in get_target("rpi4").tvm_config()


def test_a_repo_adds_a_target_that_inherits(tmp_path):
    folder = repo(tmp_path, '[tool.passfit.targets.camera]\nbase = "rpi4"\nram = "256KiB"\n')
    camera = get_target("camera", folder)
    assert (camera.name, camera.ram, camera.cpu) == ("camera", 256 * KIB, "cortex-a72")
    assert "rpi4" in load_catalogue(folder)


def test_bases_may_be_chained(tmp_path):
    folder = repo(
        tmp_path,
        '[tool.passfit.targets.a]\nbase = "b"\nram = "1KiB"\n[tool.passfit.targets.b]\nbase = "rpi4"\nflash = "2KiB"\n',
    )
    assert (get_target("a", folder).ram, get_target("a", folder).flash) == (KIB, 2 * KIB)


def test_a_repo_may_replace_a_builtin_target_from_itself(tmp_path):
    folder = repo(tmp_path, '[tool.passfit.targets.rpi4]\nbase = "rpi4"\nram = "8GiB"\n')
    assert get_target("rpi4", folder).ram == 8 * KIB**3
    assert get_target("rpi4", folder).cpu == "cortex-a72"


def test_a_repo_without_pyproject_or_targets_has_the_builtin_ones(tmp_path):
    assert load_catalogue(tmp_path) == load_catalogue()
    assert load_catalogue(repo(tmp_path, "[project]\nname = 'x'\n")) == load_catalogue()


def test_an_unknown_target_names_the_near_one():
    with pytest.raises(TargetError, match="'rpi4'"):
        get_target("rpi44")


def _memories(*pairs: str) -> str:
    """Describe a board with memories of these names and kinds."""
    entries = [
        f'{{name = "{name}", kind = "{kind}", size = "1KiB", start = {number * 4096}}}'
        for number, (name, kind) in enumerate(map(str.split, pairs))
    ]
    return f'base = "mps2-an386"\nmemories = [{", ".join(entries)}]'


def _placed(*memories: str) -> str:
    """Describe a board with memories of these names, kinds, first addresses and sizes."""
    entries = [
        f'{{name = "{name}", kind = "{kind}", size = {size}, start = {start}}}'
        for name, kind, start, size in map(str.split, memories)
    ]
    return f'base = "mps2-an386"\nmemories = [{", ".join(entries)}]'


def test_memories_that_touch_are_taken_and_data_beside_devices(tmp_path):
    entry = _placed("a flash 0 4096", "b ram 4096 4096", "c ram 3221225472 4096")
    target = get_target("mine", repo(tmp_path, f"[tool.passfit.targets.mine]\n{entry}\n"))
    assert [each.name for each in target.memories] == ["a", "b", "c"] and target.ram == 8192


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ('base = "rpi4"\nramm = "1KiB"', "unknown key 'ramm'.*Did you mean 'ram'"),
        ('base = "rpi4"\nram = "lots"', "ram"),
        ('base = "rpi4"\nram = 0', "ram is 0"),
        ('base = "rpi4"\nram = true', "ram"),
        ('base = "rpi4"\nram = [1]', "ram"),
        ('base = "rpi4"\nfeatures = "+neon"', "features"),
        ('base = "rpi4"\nfeatures = [1]', "features"),
        ('base = "rpi4"\ncpu = 72', "cpu is 72"),
        ('base = "rpi4"\ncpu = ""', "cpu is ''"),
        ('base = "rpi4"\nalignment = 48', "alignment is 48"),
        ('base = "rpi4"\nalignment = true', "alignment"),
        ('base = "rpi4"\nweights = "inplace"', "Did you mean 'in-place'"),
        ('base = "rpi44"', "unknown base 'rpi44'.*Did you mean 'rpi4'"),
        ("base = 4", "unknown base 4"),
        ('base = "mine"', "unknown base 'mine'"),
        ('base = "rpi4"\ntriple = "thumbv7em-none-eabihf"', "device without an operating system.*Give `memories`"),
        (
            'base = "rpi4"\nmemories = [{name = "a", kind = "ram", size = "1KiB", start = 0}]',
            "no memory is of the kind flash",
        ),
        ('base = "mps2-an386"\nmhz = 0', "mhz is 0"),
        ('base = "mps2-an386"\nmemories = "64KiB"', "memories is '64KiB'"),
        (
            'base = "mps2-an386"\nmemories = [{name = "a", kind = "rom", size = "1KiB", start = 0}]',
            "memory 0: kind is 'rom'",
        ),
        (
            'base = "mps2-an386"\nmemories = [{name = "a", kind = "ram", size = "1KiB"}]',
            "memory 0 lacks the keys start",
        ),
        (
            'base = "mps2-an386"\nmemories = [{name = "a", kind = "ram", size = "1KiB", start = 4294967295}]',
            "within 32 bits",
        ),
        (
            'base = "mps2-an386"\nmemories = [{name = "a", kind = "ram", size = "lots", start = 0}]',
            "size: 'lots' is not a size",
        ),
        ('base = "mps2-an386"\nmemories = [{name = "a", kind = "ram", size = "1KiB", start = -1}]', "start is -1"),
        (
            'base = "mps2-an386"\nmemories = [{name = "a", kind = "ram", size = "1KiB", start = 0, speed = 1}]',
            "unknown key 'speed'",
        ),
        (
            _memories("flash flash", "qspi flash", "sram ram"),
            "one of several memories is called 'flash'.*Call it flash1",
        ),
        (_memories("rom flash", "ram ram", "ccm ram"), "one of several memories is called 'ram'.*Call it ram1"),
        (_memories("ram flash", "sram ram"), "called 'ram', which means all of the kind ram"),
        (
            _placed("a flash 0 12288", "b ram 8192 4096"),
            "memories 'a' \\(to 0x3000\\) and 'b' \\(from 0x2000\\) overlap",
        ),
        (_placed("a ram 8192 4096", "c flash 12288 1", "b ram 8192 4096"), "'a' .*and 'b' .*overlap"),
        (_placed("a flash 0 4096", "b ram 536870912 0"), "memory 1, 'b': size is 0 from 0x20000000"),
        (_placed("a flash 0 4096", "b ram 1073741824 4096"), "memory 'b' .* is where a Cortex-M has peripherals"),
        (_placed("a flash 0 4096", "b ram 1073737728 8192"), "memory 'b' .* is where a Cortex-M has peripherals"),
        (_placed("a flash 0 4096", "b ram 3758096384 4096"), "memory 'b' .* has its own registers"),
        (_placed("a flash 3221225472 4096", "b ram 0 4096"), "memory 'a' .* has devices that hold no code"),
        ('base = "mps2-an386"\nrunner = "run.sh"', "runner is 'run.sh'.*Give a list of words"),
        ('base = "mps2-an386"\nrunner = []', "runner is \\[\\]"),
        ('base = "mps2-an386"\nrunner = ["run", "{elv}"]', "unknown word '{elv}'.*Did you mean 'elf'"),
        ('base = "rpi4"\nrunner = ["run"]', "has a runner, but an operating system"),
        ('ram = "1KiB"', "lacks the keys triple, cpu"),
    ],
)
def test_a_malformed_entry_is_refused_by_name(tmp_path, entry, message):
    with pytest.raises(TargetError, match=f"(?s)'mine'.*{message}"):
        get_target("mine", repo(tmp_path, f"[tool.passfit.targets.mine]\n{entry}\n"))


def test_a_circle_of_bases_is_refused(tmp_path):
    text = '[tool.passfit.targets.a]\nbase = "b"\n[tool.passfit.targets.b]\nbase = "a"\n'
    with pytest.raises(TargetError, match="inherits from itself"):
        get_target("a", repo(tmp_path, text))


@pytest.mark.parametrize(
    "text",
    [
        "[tool.passfit.targets\n",
        "[tool]\npassfit = 1\n",
        "[tool.passfit]\ntargets = []\n",
        '[tool.passfit.targets."Mine!"]\nbase = "rpi4"\n',
    ],
)
def test_a_malformed_file_is_refused(tmp_path, text):
    with pytest.raises(TargetError):
        load_catalogue(repo(tmp_path, text))


def test_boards_of_params_yaml_win_over_those_of_pyproject_toml(tmp_path):
    repo(tmp_path, '[tool.passfit.targets.mine]\nbase = "stm32f446"\nmhz = 16\n')
    (tmp_path / "params.yaml").write_text(
        """
boards:
  mine:
    base: stm32f446
    memories:
      - {name: flash, kind: flash, size: 256KiB, start: 0x08000000}
      - {name: sram, kind: ram, size: 64KiB, start: 0x20000000}
    runner: [openocd, -f, board.cfg, -c, "program {elf}", -c, "foreach x { a b } {}"]
  like-mine: {base: mine}
targets:
  mine:
"""
    )
    mine, like = (get_target(name, tmp_path) for name in ("mine", "like-mine"))
    assert mine.mhz == get_target("stm32f446").mhz and (mine.ram, mine.flash) == (64 * KIB, 256 * KIB)
    assert mine.runner[:2] == ("openocd", "-f") and like.runner == mine.runner and emulated_board(mine) == mine


@pytest.mark.parametrize(
    "text, message",
    [
        ("boards: [1]", "boards of .*params.yaml is \\[1\\], not a table"),
        ("boards: {mine: {base: rpi44}}", "Target 'mine' in .*params.yaml has the unknown base 'rpi44'"),
        ("boards: {1: {base: rpi4}}", "malformed name"),
        ("boards: {mine: 3}", "Target 'mine' in .*params.yaml is 3, not a table"),
    ],
)
def test_a_malformed_board_of_params_yaml_is_refused_by_name(tmp_path, text, message):
    (tmp_path / "params.yaml").write_text(text)
    with pytest.raises(TargetError, match=message):
        get_target("mine", tmp_path)


def test_a_malformed_board_stops_no_other(tmp_path, caplog):
    (tmp_path / "params.yaml").write_text(
        "boards:\n  mine: {base: stm32f446, runner: ['{tool}']}\n  other: {base: stm32f446}\n"
    )
    assert get_target("other", tmp_path).ram == get_target("stm32f446").ram
    catalogue = load_catalogue(tmp_path)
    assert {"mine", "other", "rpi4"} <= set(catalogue) and "mine" in catalogue
    assert catalogue.readable() == dict(load_catalogue()) | {"other": catalogue["other"]}
    assert "'mine' in" in caplog.text and "unknown word '{tool}'" in caplog.text
    with pytest.raises(TargetError, match="'mine' in .*unknown word '{tool}'"):
        catalogue.readable(needed=["mine"])


def test_tvm_warns_of_no_target(capfd):
    """TVM prints to the terminal itself, for each module that it compiles."""
    import tvm

    width = tvm.get_global_func("target.llvm_get_vector_width")
    assert all(width(tvm.target.Target(target.tvm_config())) >= 128 for target in load_catalogue().values())
    assert capfd.readouterr().err == ""


def test_tables_within_tables_without_end_are_refused(tmp_path):
    (tmp_path / "pyproject.toml").write_text(f"a = {'[' * 5000}{']' * 5000}")
    with pytest.raises(TargetError, match="not valid TOML"):
        load_catalogue(tmp_path)
