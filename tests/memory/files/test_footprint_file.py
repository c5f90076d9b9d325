import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passfit.errors import ConfigError
from passfit.memory import Baseline, Budget, Footprint, FootprintReport, Measured, Start, read_report, write_report
from passfit.memory.footprint import BesideFloats, RamAndWeights
from passfit.memory.measured import Energy, ErrorDistances, GivenAgreement, OutputAgreement, ReorderedRows

sizes = st.integers(0, 1 << 40)
footprints = st.builds(Footprint, *[sizes] * 8, st.booleans(), sizes, sizes)
maybe = st.none() | st.floats(0, 1e6)
agreements = st.builds(OutputAgreement, st.text(max_size=5), sizes, *[st.none() | sizes] * 4)
memories = st.none() | st.builds(RamAndWeights, sizes, sizes)
reports = st.builds(
    FootprintReport,
    st.text(max_size=5),
    st.text(max_size=5),
    st.builds(Start, sizes, sizes),
    footprints,
    st.builds(Baseline.of, footprints, st.none() | sizes)
    | st.builds(Baseline.missing, st.text(min_size=1, max_size=5)),
    st.builds(
        Measured,
        st.booleans(),
        st.text(max_size=5),
        st.none() | sizes,
        maybe,
        maybe,
        maybe,
        *[st.none() | sizes] * 3,
        st.none() | st.builds(ErrorDistances, st.text(max_size=5), maybe, maybe),
        maybe,
        st.none() | st.builds(Energy, st.text(max_size=5), maybe),
        maybe,
        st.none() | st.builds(GivenAgreement, sizes, st.lists(agreements, max_size=2).map(tuple)),
        reordered=st.none() | st.builds(ReorderedRows, sizes, sizes, st.floats(0, 1)),
    ),
    st.builds(Budget, st.none() | sizes, st.none() | sizes),
    st.booleans(),
    st.booleans(),
    st.none() | st.builds(BesideFloats, st.floats(0, 1), memories, memories),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("report") / "footprint.json"


@given(report=reports)
def test_a_report_survives_its_file(place, report):
    write_report(report, place)
    first = place.read_bytes()
    again = read_report(place)
    assert again == report
    write_report(again, place)
    assert place.read_bytes() == first


def saved(place, change) -> None:
    data = FootprintReport(
        model="m",
        target="t",
        start=Start(1, 2),
        best=Footprint(1, 2, 3, 4, 5, 6, 7, 8, True, 9, 10),
        baseline=Baseline.of(Footprint(1, 2, 3, 4, 5, 6, 7, 8, True, 9, 10)),
        measured=Measured(False, "not-run: no emulator"),
    ).to_json()
    change(data)
    place.write_text(json.dumps(data))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("best"), "best is missing"),
        (lambda d: d["best"].pop("ram"), "best.ram is missing"),
        (lambda d: d["best"].update(ram="1"), "best.ram should be a valid integer"),
        (lambda d: d.pop("baseline"), "baseline is missing"),
        (lambda d: d["baseline"].pop("weights"), "baseline.weights is missing"),
        (lambda d: d.update(fits=None), "fits should be a valid boolean"),
    ],
)
def test_a_malformed_report_is_refused_with_the_place(tmp_path, change, message):
    place = tmp_path / "footprint.json"
    saved(place, change)
    with pytest.raises(ConfigError, match=message) as error:
        read_report(place)
    assert str(place) in str(error.value)


def test_a_report_of_before_quantised_models_were_described_is_read(tmp_path):
    place = tmp_path / "footprint.json"
    saved(place, lambda data: (data.pop("quantised"), data["measured"].pop("given")))
    report = read_report(place)
    assert report.quantised is None and report.measured.given is None


@pytest.mark.parametrize("text", ["", "{", "[]", "nothing", '{"model": "m"'])
def test_what_is_no_report_is_refused(tmp_path, text):
    (tmp_path / "footprint.json").write_text(text)
    with pytest.raises(ConfigError, match="footprint.json"):
        read_report(tmp_path / "footprint.json")


def test_a_missing_report_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        read_report(tmp_path / "footprint.json")


@given(report=reports)
def test_the_baselines_flash_is_weights_and_code_or_not_told(report):
    baseline = report.to_json()["baseline"]
    known = report.baseline.code is not None
    assert baseline["code"] == report.baseline.code
    assert baseline["flash"] == (baseline["weights"] + baseline["code"] if known else None)


def test_a_file_of_before_throughput_and_energy_were_measured_is_read(place):
    saved(place, lambda data: [data["measured"].pop(name) for name in ("throughput", "energy", "compile_seconds")])
    measured = read_report(place).measured
    assert measured.throughput is measured.energy is measured.compile_seconds is None
