"""Write packages of all kinds: the same bytes each time, and refusals that name what is wrong."""

import json
import shutil
from pathlib import Path

import pytest

from passfit.errors import ConfigError, OutputError
from passfit.package import KINDS, check_folder, write, write_package
from passfit.targets import get_target

pytestmark = [pytest.mark.slow, pytest.mark.tvm]
BOARD = "mps2-an386"
#: a board that each kind of package is for
BOARDS = dict.fromkeys(KINDS, BOARD) | {"esp-idf": "rv32-virt"}


def files(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def without_golden(result: Path, folder: Path) -> Path:
    """Copy a result to `folder`, as an older passfit would have left it."""
    shutil.copytree(result, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["files"]["golden.json"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


@pytest.mark.parametrize("source", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_result_gives_the_same_package_with_its_library(tmp_path, result, kind, source):
    made = result(BOARDS[kind])
    for name in "ab":
        write_package(made, kind, tmp_path / name, source=source)
    one, two = (files(tmp_path / name) for name in "ab")
    assert one == two and ((made / "libsmall_net.a").read_bytes() in one.values()) != source
    assert [(made / name).read_bytes() in one.values() for name in ("small_net_library.c", "small_net_kernels.S")] == [
        source
    ] * 2
    assert {"README.md"} < set(one) and any(name.endswith("small_net_selftest.c") for name in one)
    assert "small_net" in one["README.md"].decode() and not [
        name for name, data in one.items() if b"{{" in data and not name.endswith((".a", ".pack"))
    ]


def test_a_folder_that_was_changed_is_refused_by_the_name_of_its_file(tmp_path, result):
    shutil.copytree(result(BOARD), tmp_path / "changed")
    (tmp_path / "changed" / "outputs.bin").write_bytes(b"other")
    with pytest.raises(ConfigError, match=r"outputs\.bin' is missing, or was changed"):
        write_package(tmp_path / "changed", "cmake", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_result_without_golden_vectors_has_no_self_test(tmp_path, result):
    folder = without_golden(result(BOARD), tmp_path / "result")
    for kind in [kind for kind in KINDS if BOARDS[kind] == BOARD]:
        write_package(folder, kind, tmp_path / kind)
        assert not [
            name
            for name, data in files(tmp_path / kind).items()
            if "selftest" in name or (name[-2:] != ".a" and b"elftest()" in data)
        ]
        assert "There is no self test" in (tmp_path / kind / "README.md").read_text()


@pytest.mark.parametrize(
    "folder, kind, version, message",
    [
        (BOARD, "cmaek", "1.0.0", "no package 'cmaek'.*Did you mean 'cmake'"),
        (BOARD, "cmake", "one", "The version is 'one'"),
        ("x86-64", "zephyr", "1.0.0", "x86-64 .* is not a processor of zephyr"),
        ("nowhere", "cmake", "1.0.0", "manifest.json' cannot be read"),
    ],
)
def test_what_makes_no_package_is_said(tmp_path, result, folder, kind, version, message):
    source = tmp_path / folder if folder == "nowhere" else result(folder)
    with pytest.raises(ConfigError, match=message):
        write_package(source, kind, tmp_path / "out", version)


def test_vectors_too_large_for_a_source_file_are_left_out(tmp_path, result, monkeypatch):
    # a case has 128 + 80 + 16 + 40 bytes
    for limit, cases in ((263, 0), (264, 1), (528, 2)):
        monkeypatch.setattr(write, "_MOST_BYTES", limit)
        write_package(result(BOARD), "cmake", tmp_path / str(limit), cases=3)
        source = tmp_path / str(limit) / "src" / "small_net_selftest.c"
        assert source.exists() == bool(cases) and (not cases or f"CASES = {cases} " in source.read_text())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"url": "my page"}, "The url is 'my page'"),
        ({"author": " "}, "The author is ' '"),
        ({"author": "one\ntwo"}, r"The author is 'one\\ntwo'"),
        ({"source": True}, "has no sources"),
    ],
)
def test_what_cannot_stand_in_a_package_is_refused(tmp_path, result, given, message):
    folder = without_golden(result(BOARD), tmp_path / "result")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"] = {
        name: digest for name, digest in manifest["files"].items() if not name.startswith("small_net_")
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ConfigError, match=message) as refusal:
        write_package(folder, "cmake", tmp_path / "out", **given)
    assert refusal.value.hint and not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["arduino", "platformio", "cmsis-pack", "esp-idf"])
def test_a_package_names_author_and_url(tmp_path, result, kind):
    write_package(result(BOARDS[kind]), kind, tmp_path, author="Ada Lovelace", url="https://example.org/kws")
    texts = [
        data.decode()
        for name, data in files(tmp_path).items()
        if name.endswith((".json", ".properties", ".pdsc", ".yml"))
    ]
    assert any("https://example.org/kws" in text for text in texts) and not any("example.com" in text for text in texts)
    assert any("Ada Lovelace" in text for text in texts) or kind == "cmsis-pack"  # whose vendor is a name of files


def test_a_pack_holds_the_files_of_its_folder(tmp_path, result):
    import zipfile

    write_package(result(BOARD), "cmsis-pack", tmp_path, "1.2.3")
    with zipfile.ZipFile(tmp_path / "passfit.small_net.1.2.3.pack") as pack:
        held = {name: pack.read(name) for name in pack.namelist()}
        assert pack.testzip() is None and {entry.date_time for entry in pack.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert held == {name: data for name, data in files(tmp_path).items() if not name.endswith(".pack")}
    write_package(result(BOARD), "cmsis-pack", tmp_path, "1.2.4")
    assert [file.name for file in tmp_path.glob("*.pack")] == ["passfit.small_net.1.2.4.pack"]


@pytest.mark.parametrize("command", ["package", "compile"])
def test_the_command_writes_packages_and_refuses_before_it_builds(tmp_path, result, monkeypatch, capsys, command):
    from passfit.cli.app import main

    def run(*words):
        monkeypatch.setattr("sys.argv", ["passfit", command, *words])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code

    if command == "package":
        assert run(str(result(BOARD)), "--kind", "arduino", "--out", str(tmp_path / "out"), "--version", "2.0.1") == 0
        assert "version=2.0.1" in (tmp_path / "out" / "library.properties").read_text()
        assert run(str(result(BOARD)), "--kind", "zephir", "--out", str(tmp_path / "not")) == 2
    else:
        model = str(result(BOARD).parents[1] / "small-net.onnx")
        options = [model, "--target", BOARD, "--strategy", "tvm-default", "--workers", "0", "--out"]
        assert run(*options, str(tmp_path / "out"), "--package", "cmake", "--package", "zephyr", "--source") == 0
        assert (tmp_path / "out" / "small_net_kernels.S").is_file()
        assert {each.name for each in (tmp_path / "out" / "package").iterdir()} == {"cmake", "zephyr"}
        assert run(*options, str(tmp_path / "not"), "--package", "zephir") == 2
    assert not (tmp_path / "not").exists() and "Did you mean 'zephyr'" in capsys.readouterr().err


def test_a_package_does_not_overwrite_the_result(tmp_path, result):
    with pytest.raises(OutputError, match="holds the result itself"):
        write_package(result(BOARD), "cmake", result(BOARD))


def test_a_package_replaces_an_earlier_one_of_its_kind_and_library_as_a_whole(tmp_path, result):
    plain = without_golden(result(BOARD), tmp_path / "result")
    for kind in [kind for kind in KINDS if BOARDS[kind] == BOARD]:
        write_package(plain, kind, tmp_path / "fresh" / kind)
        write_package(result(BOARD), kind, tmp_path / kind)
        write_package(plain, kind, tmp_path / kind)
        assert files(tmp_path / kind) == files(tmp_path / "fresh" / kind)


@pytest.mark.parametrize("name", ["library.json", "README.md", "src/notes.txt", "build/link", ".git"])
@pytest.mark.parametrize("earlier", [False, True])
def test_files_that_no_package_wrote_stay(tmp_path, result, name, earlier):
    out = tmp_path / "out"
    if earlier:
        write_package(result(BOARD), "cmake", out)
    (place := out / name).parent.mkdir(parents=True, exist_ok=True)
    place.write_text("# mine\n")
    before = files(out)
    with pytest.raises(OutputError, match="is not empty: '.*' is of no earlier cmake package") as refusal:
        write_package(result(BOARD), "cmake", out)
    assert "Choose another folder" in refusal.value.hint and files(out) == before


def test_neither_kinds_nor_libraries_are_mixed(tmp_path, result):
    write_package(result(BOARD), "cmake", tmp_path / "out")
    before = files(tmp_path / "out")
    for kind in [kind for kind in KINDS if kind != "cmake" and BOARDS[kind] == BOARD]:
        with pytest.raises(OutputError, match=f"is of no earlier {kind} package of the library small_net"):
            write_package(result(BOARD), kind, tmp_path / "out")
    with pytest.raises(OutputError, match="is of no earlier cmake package of the library other"):
        check_folder(tmp_path / "out", "cmake", get_target(BOARD), "other")
    check_folder(tmp_path / "out", "cmake", get_target(BOARD))
    assert files(tmp_path / "out") == before


def test_a_package_may_replace_that_of_another_library(tmp_path, result):
    """It is so below the folder of a result, which another replaces: here a package is made to look like another's."""
    write_package(result(BOARD), "cmake", out := tmp_path / "out")
    before = files(out)
    for file in [each for each in out.rglob("*small_net*") if each.is_file()]:
        file.rename(file.with_name(file.name.replace("small_net", "other")))
    (out / "README.md").write_text((out / "README.md").read_text().replace("# small_net", "# other", 1))
    write_package(result(BOARD), "cmake", out, over_any=True)
    assert files(out) == before
