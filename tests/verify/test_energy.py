"""Laws of the energy counters, on made-up trees of /sys/class/powercap."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passfit.targets import get_target, how_to_run
from passfit.verify.measure import energy
from passfit.verify.measure.energy import LEAST_NANOSECONDS, Counter, energy_of, rapl_counters

native = pytest.mark.skipif(not how_to_run(get_target("x86-64")).native, reason="the host cannot run x86-64-v3")
RANGE = 262_143_328_850
LONG = LEAST_NANOSECONDS


def zone(root: Path, folder: str, name: str, microjoules: object = 5, limit: object = RANGE) -> Path:
    place = root / folder
    place.mkdir(parents=True)
    for file, content in (("name", name), ("energy_uj", microjoules), ("max_energy_range_uj", limit)):
        (place / file).write_text(f"{content}\n")
    return place


def test_every_package_counts_once(tmp_path):
    zone(tmp_path, "intel-rapl:10", "package-10")
    zone(tmp_path, "intel-rapl:0", "package-0")
    zone(tmp_path, "intel-rapl:0:0", "core")
    zone(tmp_path, "intel-rapl:1", "package-1", limit=1000)
    zone(tmp_path, "intel-rapl:2", "psys")
    zone(tmp_path, "intel-rapl-mmio:0", "package-0")
    (tmp_path / "intel-rapl").mkdir()
    found, why = rapl_counters(tmp_path)
    assert [each.name for each in found] == ["package-0", "package-1", "package-10"] and why == ""
    assert [each.range_uj for each in found] == [RANGE, 1000, RANGE]


@pytest.mark.parametrize(
    "make", [lambda root: None, lambda root: root.mkdir(), lambda root: zone(root, "intel-rapl:0", "psys")]
)
def test_a_machine_without_packages_says_so(tmp_path, make):
    make(tmp_path / "powercap")
    found, why = rapl_counters(tmp_path / "powercap")
    assert found == () and why.startswith("absent: ") and "no RAPL package" in why


@pytest.mark.parametrize("file", ["name", "energy_uj", "max_energy_range_uj"])
def test_a_file_that_cannot_be_read_is_named(tmp_path, file):
    zone(tmp_path, "intel-rapl:0", "package-0")
    place = zone(tmp_path, "intel-rapl:1", "package-1")
    (place / file).unlink()
    (place / file).mkdir()  # root may read any file, but nobody a folder
    found, why = rapl_counters(tmp_path)
    assert found == () and str(place / file) in why and "cannot be read" in why


@pytest.mark.parametrize("content", ["", "many", "1.5"])
def test_a_counter_of_other_content_is_absent(tmp_path, content):
    place = zone(tmp_path, "intel-rapl:0", "package-0", microjoules=content)
    found, why = rapl_counters(tmp_path)
    assert found == () and why.startswith("absent: ") and str(place) in why


@given(st.integers(1, RANGE), st.data())
def test_a_counter_wraps_at_its_range(limit, data):
    start, used = data.draw(st.integers(0, limit - 1)), data.draw(st.integers(0, limit - 1))
    counter = Counter("package-0", Path("energy_uj"), limit)
    assert counter.consumed(start, (start + used) % limit) == used


def counters(count: int) -> list[Counter]:
    return [Counter(f"package-{number}", Path("energy_uj"), 1000) for number in range(count)]


def test_packages_add_up_and_are_shared_by_the_runs():
    found = energy_of(counters(2), [[100, 400], [900, 100]], 10, LONG)
    assert found.mj_per_run == pytest.approx((300 + 200) / 10 / 1000)
    assert "package-0, package-1" in found.how and "all processes" in found.how


@pytest.mark.parametrize(
    ("count", "readings", "runs", "nanoseconds", "why"),
    [
        (0, [], 10, LONG, "absent: none here"), (1, [], 10, LONG, "could not be read"),
        (1, [[5, -1]], 10, LONG, "could not be read"), (1, [[5, 6]], 0, LONG, "could not be read"),
        (1, [[5, 6]], 10, LONG - 1, "too short"), (1, [[5, 5]], 10, LONG, "stood still"),
    ],
)  # fmt: skip
def test_energy_that_is_not_known_is_absent_with_the_reason(count, readings, runs, nanoseconds, why):
    found = energy_of(counters(count), readings, runs, nanoseconds, "absent: none here")
    assert found.mj_per_run is None and found.how.startswith("absent: ") and why in found.how


@pytest.mark.slow
@native
def test_a_library_is_measured_by_the_counters_of_its_machine(tmp_path, monkeypatch):
    from .test_run import models, verify

    place = zone(tmp_path / "sys", "intel-rapl:0", "package-0", microjoules=0, limit=1000)
    monkeypatch.setattr(energy, "ROOT", tmp_path / "sys")
    done = threading.Event()

    def consume() -> None:
        value = 0
        while not done.wait(0.01):
            value += 7
            (place / "new").write_text(f"{value % 1000}\n")
            os.replace(place / "new", place / "energy_uj")

    thread = threading.Thread(target=consume)
    thread.start()
    try:
        (tmp_path / "a").mkdir()
        measured = verify(models.matmul_exp(), tmp_path / "a")
    finally:
        done.set()
        thread.join()
    assert measured.energy.mj_per_run > 0 and "package-0" in measured.energy.how
    assert measured.throughput > 0 and measured.latency_ms > 0
    monkeypatch.setattr(energy, "ROOT", tmp_path / "nowhere")
    (tmp_path / "b").mkdir()
    without = verify(models.matmul_exp(), tmp_path / "b")
    assert without.energy.mj_per_run is None and "nowhere" in without.energy.how and without.throughput > 0
