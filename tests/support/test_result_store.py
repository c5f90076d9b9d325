"""A store gives back what it was given, to any process, and never anything else."""

from __future__ import annotations

import json
import os
from functools import cache, partial
from pathlib import Path

import pytest

from passfit.support import result_store
from passfit.support.result_store import SUBJECTS, ResultStore, kept_bytes, modules_of, shared_store, store_of


def never() -> object:
    raise AssertionError("made again")


def test_a_result_is_made_once_for_all_stores_of_a_file(tmp_path: Path) -> None:
    one, other = ResultStore(tmp_path / "deep" / "a.jsonl"), ResultStore(tmp_path / "deep" / "a.jsonl")
    assert one.get_or_make("plan 1", lambda: [3, 5]) == [3, 5]
    assert other.get_or_make("plan 1", never) == [3, 5]
    assert other.get_or_make("plan 2", lambda: None) is None
    assert one.get_or_make("plan 2", never) is None


@pytest.mark.fault("the store", "damaged lines", "they are computed again")
def test_damaged_lines_are_made_again_and_the_others_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    for number in range(3):
        ResultStore(path).get_or_make(f"plan {number}", lambda number=number: [number])
    kept, changed, cut = filter(None, path.read_text().splitlines())
    path.write_text(
        f"{kept}\n{changed.replace('[1]', '[7]')}\n17\n[]\n\xff\n{cut[:-9]}"
    )  # killed while writing the last
    store = ResultStore(path)
    assert store.get_or_make("plan 0", never) == [0]
    assert store.get_or_make("plan 1", lambda: [1]) == [1]
    assert store.get_or_make("plan 2", lambda: [2]) == [2]
    assert [ResultStore(path).get_or_make(f"plan {number}", never) for number in range(3)] == [[0], [1], [2]]


@pytest.mark.fault("the store", "processes write at once", "all results are kept")
def test_processes_may_write_at_once(tmp_path: Path) -> None:
    path, children = tmp_path / "a.jsonl", []
    for child in range(4):
        children.append(os.fork())
        if children[-1] == 0:
            store = ResultStore(path)
            for number in range(200):
                store.get_or_make(f"{child} {number}", lambda child=child, number=number: [child, number] * 20)
            os._exit(0)
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    store = ResultStore(path)
    for child in range(4):
        for number in range(200):
            assert store.get_or_make(f"{child} {number}", never) == [child, number] * 20


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = ResultStore(tmp_path / "file" / "a.jsonl")
    assert store.get_or_make("plan", lambda: [1]) == [1]
    assert store.get_or_make("plan", never) == [1]


def test_a_full_file_grows_no_more(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "a.jsonl"
    monkeypatch.setattr(result_store, "MOST_BYTES", 1000)
    store = ResultStore(path)
    for number in range(200):
        store.get_or_make(str(number), lambda number=number: number)
    assert 900 < path.stat().st_size < 1100
    assert ResultStore(path).get_or_make("199", lambda: "again") == "again"


def test_files_that_were_read_last_stay_as_many_bytes_as_some_full_ones_have(tmp_path: Path, monkeypatch) -> None:
    ResultStore(tmp_path / "size" / "a.jsonl").get_or_make("plan", lambda: 1)
    monkeypatch.setattr(result_store, "MOST_BYTES", (tmp_path / "size" / "a.jsonl").stat().st_size)
    paths = [tmp_path / "files" / f"{number}.jsonl" for number in range(6)]
    for number, path in enumerate(paths):
        if number == 4:
            ResultStore(paths[1], 4).get_or_make("plan", never)
        ResultStore(path, 4).get_or_make("plan", lambda: 1)
        os.utime(path, (number, number))
    assert sorted(each.name for each in paths[0].parent.iterdir()) == ["1.jsonl", "3.jsonl", "4.jsonl", "5.jsonl"]


def test_subjects_have_files_of_their_own_the_latest_of_which_are_kept(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PASSFIT_STORE", str(tmp_path))
    assert store_of("graph").get_or_make("plan", lambda: 1) == 1
    assert store_of("graph").get_or_make("plan", never) == 1
    assert store_of("another").get_or_make("plan", lambda: 2) == 2
    (folder,) = tmp_path.glob("subjects/*")
    assert sorted(each.name.partition("-")[0] for each in folder.iterdir()) == ["another", "graph"]
    monkeypatch.setattr(result_store, "MOST_BYTES", next(folder.iterdir()).stat().st_size)
    for number in range(SUBJECTS):
        store_of(str(number)).get_or_make("plan", lambda: 3)
    assert len(list(folder.iterdir())) == SUBJECTS
    monkeypatch.setenv("PASSFIT_STORE", "off")
    store_of("off").get_or_make("plan", lambda: 4)
    assert not list(folder.glob("off-*"))


def test_a_result_holds_for_the_code_that_computes_it(tmp_path: Path, monkeypatch) -> None:
    from passfit.support.sizes import format_bytes, parse_size

    monkeypatch.setenv("PASSFIT_STORE", str(tmp_path))
    digests = {"passfit.support.sizes": "1", "passfit.support.divisors": "1"}
    monkeypatch.setattr(result_store, "code_digest", lambda *modules: ",".join(map(digests.get, modules)))

    def stored(make) -> object:
        result_store._version.cache_clear()
        return store_of("").get_or_make("plan", make), kept_bytes("files", "1", lambda: str(make()).encode())

    try:
        assert stored(partial(format_bytes, 1)) == stored(partial(format_bytes, 2)) == ("1 B", b"1 B")
        digests["passfit.support.divisors"] = "2"
        assert stored(partial(format_bytes, 3)) == ("1 B", b"1 B")
        digests["passfit.support.sizes"] = "2"
        assert stored(partial(format_bytes, 3)) == stored(partial(parse_size, "4")) == ("3 B", b"3 B")
    finally:
        result_store._version.cache_clear()


def test_modules_are_those_of_functions_and_objects_that_a_function_holds() -> None:
    from passfit.support.divisors import divisors
    from passfit.support.sizes import format_bytes

    store, sizes, numbers = "passfit.support.result_store", "passfit.support.sizes", "passfit.support.divisors"
    inner = lambda: divisors(4)  # noqa: E731
    held = {"make": format_bytes}
    assert modules_of(format_bytes) == modules_of(partial(format_bytes, 1)) == (sizes,)
    assert modules_of(partial(divisors, format_bytes)) == (sizes, numbers)
    assert modules_of(ResultStore(None)._load) == (store,)
    assert modules_of(lambda: inner()) == (numbers,) and modules_of(lambda: held) == ()
    assert modules_of(lambda made=inner: made) == ()
    function, kind, memoised = format_bytes, ResultStore, cache(divisors)
    assert modules_of(lambda: (function, kind, memoised)) == (sizes, store, numbers)
    holding = ResultStore(None)
    holding.make = format_bytes
    assert modules_of(lambda: (inner, holding)) == (store, sizes, numbers), "and what these hold"


def test_the_folder_is_named_by_the_environment(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PASSFIT_STORE", str(tmp_path))
    shared_store.cache_clear()
    shared_store().get_or_make("plan", lambda: 1)
    (file,) = tmp_path.glob("*/*")
    assert json.loads(file.read_text())[:2] == ["plan", 1]
    monkeypatch.setenv("PASSFIT_STORE", "off")
    shared_store.cache_clear()
    shared_store().get_or_make("another", lambda: 1)
    assert "another" not in file.read_text()
    shared_store.cache_clear()


@pytest.mark.fault("the store", "damaged objects", "they are compiled again")
def test_bytes_are_made_once_by_key_and_again_if_their_file_is_damaged(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PASSFIT_STORE", str(tmp_path))
    assert kept_bytes("objects", "1f", lambda: b"one") == kept_bytes("objects", "1f", never) == b"one"
    assert kept_bytes("objects", "2f", lambda: b"two") == kept_bytes("objects", "2f", never) == b"two"
    assert kept_bytes("cases", "1f", lambda: b"") == kept_bytes("cases", "1f", never) == b""
    (file,) = tmp_path.rglob("objects/1f-*")
    for damaged in (b"", file.read_bytes()[:-1], file.read_bytes().replace(b"one", b"two")):
        file.write_bytes(damaged)
        assert kept_bytes("objects", "1f", lambda: b"again") == kept_bytes("objects", "1f", never) == b"again"
    monkeypatch.setenv("PASSFIT_STORE", "off")
    assert kept_bytes("objects", "1f", lambda: b"other") == b"other"


def test_files_that_were_not_used_for_longest_go(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PASSFIT_STORE", str(tmp_path))
    monkeypatch.setattr(result_store, "MOST_KEPT", 300)
    for number in range(9):
        kept_bytes("objects", f"{number + 1}", lambda: bytes(96))
        (file,) = tmp_path.rglob(f"objects/{number + 1}-*")
        os.utime(file, (number, number))
    kept_bytes("objects", "2", never)
    kept_bytes("objects", "0", lambda: b"new")  # whoever writes it looks at the sizes
    assert sorted(each.name[0] for each in file.parent.iterdir()) == ["0", "2", "8", "9"]


def test_bytes_of_a_folder_that_cannot_be_written_are_made_again(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PASSFIT_STORE", str(tmp_path / "file"))
    assert kept_bytes("objects", "1f", lambda: b"one") == kept_bytes("objects", "1f", lambda: b"one") == b"one"
