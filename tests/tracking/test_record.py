"""What is logged, without MLflow."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from passfit.errors import PassfitError
from passfit.memory.footprint import BesideFloats, RamAndWeights
from passfit.memory.measured import Energy, GivenAgreement, OutputAgreement
from passfit.params.params import SearchParams
from passfit.tracking.record import read_record


def record(repo, model="a", target="rpi4"):
    return read_record(repo.path, repo.params, model, target)


def test_no_result_is_no_record(repo):
    assert record(repo) is None


def figures(found) -> dict:
    """Values of each metric by step."""
    by_name: dict = {}
    for each in found.figures:
        by_name.setdefault(each.name, {})[each.step] = each.value
    return by_name


def test_ram_comes_first_beside_the_baseline_and_figures_are_few(repo):
    repo.result()
    found = record(repo)
    assert found.name == "a @ rpi4"
    by_name = figures(found)
    assert next(iter(by_name)) == "best/ram_kib"
    assert by_name["best/ram_kib"] == {0: 1280 / 1024, 1: 640 / 1024}
    assert by_name["best/latency_ms"] == {1: 1.5}
    assert by_name["budget/ram_margin_kib"] == {0: 360 / 1024} and by_name["best/fits"] == {0: 1}
    assert by_name["best/max_rel_error"] == {0: 2e-6}
    assert by_name["search/best_ram_kib"] == {step: (900 - step) / 1024 for step in range(5)}
    assert len(by_name) <= 10
    assert min(by_name).startswith("best/"), "the section that MLflow opens on"
    assert json.loads(found.footprint)["best"]["ram"] == 640, "raw bytes"
    assert found.params == {
        "model": "a", "target": "rpi4", "strategy": "orchestrated", "max-extra-compute": "0.25", "max-slowdown": "1.25",
    }  # fmt: skip


def test_throughput_energy_and_the_time_of_the_compilation_are_figures_where_they_are_known(repo):
    names = {"verify/throughput_per_s": 500.0, "verify/energy_mj": 2.5, "verify/compile_seconds": 7.0}
    repo.result()
    assert not set(names) & set(figures(record(repo)))
    repo.result(throughput=500.0, energy=Energy("RAPL: package-0", 2.5), compile_seconds=7.0)
    assert {name: values[0] for name, values in figures(record(repo)).items() if name in names} == names
    repo.result(throughput=500.0, energy=Energy("absent: no counters"))
    assert "verify/energy_mj" not in figures(record(repo))


def test_a_quantised_model_is_compared_with_its_float_twin_and_the_model_as_given(repo):
    repo.result()
    found = record(repo)
    assert not any(name.startswith(("beside float32", "verify/given")) for name in figures(found))
    agreement = GivenAgreement(2, (OutputAgreement("y", 8, 2, 1, 4, 3),))
    repo.result(given=agreement, quantised=BesideFloats(0.5, RamAndWeights(1024, 2048), RamAndWeights(4096, 8192)))
    found = record(repo)
    assert {name: values for name, values in figures(found).items() if name.startswith(("beside float32", "verify/given"))} == {
        "beside float32/integer_share": {0: 0.5}, "beside float32/ram_kib": {0: 4, 1: 1}, "beside float32/weights_kib": {0: 8, 1: 2},
        "verify/given_max_lsb": {0: 1}, "verify/given_differing": {0: 0.25}, "verify/given_same_decisions": {0: 0.75},
    }  # fmt: skip
    assert "50% of its multiplications on integers" in found.note and "at most 1 LSB" in found.note


def test_flash_is_compared_only_where_the_baselines_code_is_known(repo):
    repo.result()
    assert figures(record(repo))["best/flash_kib"] == {1: 2.0}
    assert "| flash | 2.0 KiB | – |" in record(repo).note
    data = json.loads((repo.path / "out/compile/a/rpi4/footprint.json").read_text())
    data["baseline"] |= {"code": 96, "flash": 2096}
    repo.write("compile/a/rpi4/footprint.json", data)
    assert figures(record(repo))["best/flash_kib"] == {0: 2096 / 1024, 1: 2.0}


def test_latency_is_compared_where_the_search_timed_tvms_kernels(repo):
    repo.result()
    points = [{"lever": "share", "latency": 1.25}, {"lever": "tvm-default", "latency": 2.5}]
    for unit, expected in (("ms", {0: 2.5, 1: 1.5}), ("instructions", {1: 1.5})):
        repo.write("optimize/a/rpi4/front.json", {"unit": unit, "points": points})
        assert figures(record(repo))["best/latency_ms"] == expected
    repo.write("optimize/a/rpi4/front.json", {"unit": "ms", "points": [{"lever": "share"}]})
    with pytest.raises(PassfitError, match=r"front\.json: points.*latency"):
        record(repo)


def test_a_limit_of_latency_is_a_param_and_its_front_an_artifact(repo):
    repo.result()
    before = record(repo)
    repo.write("optimize/a/rpi4/front.json", {"unit": "ms", "points": []})
    search = SearchParams.model_validate({"max-latency": "1.5x"})
    found = read_record(repo.path, repo.params.model_copy(update={"search": search}), "a", "rpi4")
    assert found.params["max-latency"] == "1.5x" and "max-latency" not in before.params
    assert "front.json" in [path.name for path in found.artifacts] and found.content != before.content


def test_every_file_of_the_result_is_an_artifact(repo):
    repo.result()
    names = [path.name for path in record(repo).artifacts]
    assert names == [
        "libtwo.a", "manifest.json", "sequence.json", "trajectory.json", "effects.json",
    ]  # fmt: skip


def test_the_budget_is_that_of_params_and_another_one_is_another_record(repo):
    repo.result()
    before = record(repo)
    assert json.loads(before.footprint)["budget"] == {"ram": 1000, "flash": None} and before.result.fits
    params = repo.path / "params.yaml"
    params.write_text(params.read_text().replace("1000", "600"))
    after = record(repo)
    assert json.loads(after.footprint)["fits"] is False and not after.result.fits
    assert figures(after)["best/fits"] == {0: 0} and figures(after)["budget/ram_margin_kib"] == {0: -40 / 1024}
    assert after.content != before.content


def test_the_same_files_have_the_same_content_wherever_they_are(repo, tmp_path):
    repo.result()
    (tmp_path / "other").mkdir()
    other = type(repo)(tmp_path / "other")
    other.result()
    assert record(repo).content == record(other).content


@pytest.mark.parametrize(
    "place",
    [
        "compile/a/rpi4/libtwo.a",
        "compile/a/rpi4/new.h",
        "optimize/a/rpi4/sequence.json",
        "profile/a/effects.json",
    ],
)
def test_any_changed_file_is_another_content(repo, place):
    repo.result()
    before = record(repo).content
    repo.write(place, {"changed": 1})
    assert record(repo).content != before


def test_another_target_is_another_content(repo):
    repo.result("a", "rpi4")
    repo.result("a", "x86-64")
    assert record(repo).content != record(repo, target="x86-64").content


def test_the_note_is_a_table(repo):
    repo.result()
    note = record(repo).note
    assert "| ram |" in note and "tvm-default" in note and "below the budget" in note and "2.0e-06" in note


def test_only_a_shared_library_can_be_served(repo):
    repo.result(target="x86-64")
    assert record(repo, target="x86-64").delivery.servable is None
    repo.library(b"\x7fELF")
    assert record(repo, target="x86-64").delivery.servable.io.inputs[0].name == "x"


@pytest.mark.parametrize(
    "manifest", [{}, [], {"io": {}}, {"io": {"name": "two", "inputs": [{"name": "x"}], "outputs": []}}]
)
def test_a_library_without_its_ports_is_refused(repo, manifest):
    repo.result(target="x86-64")
    repo.library(b"\x7fELF")
    repo.write("compile/a/x86-64/manifest.json", manifest)
    with pytest.raises(PassfitError, match=r"manifest.json: io.*dvc repro"):
        record(repo, target="x86-64")


@pytest.mark.parametrize("points", [{}, [3], [{"evaluation": 1}], [{"evaluation": 1, "ram": "2"}]])
def test_a_malformed_trajectory_is_refused(repo, points):
    repo.result()
    repo.write("optimize/a/rpi4/trajectory.json", points)
    with pytest.raises(PassfitError, match=r"trajectory\.json"):
        record(repo)


def test_a_malformed_footprint_is_refused(repo):
    repo.result()
    data = json.loads((repo.path / "out/compile/a/rpi4/footprint.json").read_text())
    del data["best"]
    repo.write("compile/a/rpi4/footprint.json", data)
    with pytest.raises(PassfitError, match="best is missing"):
        record(repo)


def test_importing_tracking_stays_cheap():
    code = (
        "import sys, passfit.tracking; print([m for m in ('tvm', 'mlflow', 'numpy', 'requests') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
