"""Test the laws of the gate, without files."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from passfit.artifacts.places import parse_result
from passfit.gate.growth import parse_growth
from passfit.gate.verdicts import information, judge, remarks
from passfit.memory.footprint import BesideFloats, RamAndWeights
from passfit.memory.limits import RegionUse
from passfit.memory.measured import GivenAgreement, OutputAgreement
from passfit.params.params import Params, load_params

from .samples import KIB, MIB, footprint


@dataclass(frozen=True)
class Device:
    ram: int = 64 * MIB
    flash: int = 64 * MIB


DEVICES = {"x86-64": Device()}
SIZES = st.integers(min_value=0, max_value=1 << 40)


def result(measured_ram=None, page=4096, **sizes):
    data = footprint(**sizes)
    data["measured"] |= {"ram": measured_ram, "page": page}
    return parse_result(json.dumps(data), "footprint.json", data["model"], data["target"])


def declare(ram: int | None = None, flash: int | None = None) -> Params:
    budget = {"ram": ram, "flash": flash}
    return Params.model_validate({"models": {"a": {"source": "a"}}, "targets": {"x86-64": {"budget": budget}}})


def verdicts(params, found, devices=DEVICES, **more):
    pairs = {("a", "x86-64"): found} if found is not None else {}
    return {(v.quantity, v.limit_kind): v for v in judge(params, pairs, devices, **more)}


@given(used=SIZES, limit=st.integers(min_value=1, max_value=1 << 40))
def test_a_budget_holds_exactly_up_to_its_limit(used, limit):
    verdict = verdicts(declare(ram=limit), result(ram=used))["ram", "budget"]
    assert verdict.ok == (used <= limit)
    assert verdict.margin == limit - used


def test_budget_and_capacity_are_lines_of_their_own():
    found = verdicts(declare(ram=600 * KIB), result(ram=900 * KIB), {"x86-64": Device(ram=800 * KIB)})
    assert set(found) == {("ram", "budget"), ("ram", "capacity"), ("flash", "capacity")}
    assert not found["ram", "budget"].ok and not found["ram", "capacity"].ok and found["flash", "capacity"].ok


def test_a_verdict_tells_the_distance():
    why = verdicts(declare(ram=600 * KIB), result(ram=619 * KIB))["ram", "budget"].why
    assert why == "ram over budget by 19.0 KiB (619.0 KiB of 600.0 KiB)"


def with_regions(*regions: RegionUse):
    plain = result(ram=1, flash=1)
    return replace(plain, best=replace(plain.best, regions=regions))


@given(used=SIZES, size=st.integers(1, 1 << 40), room=st.none() | st.integers(1, 1 << 40))
def test_each_of_several_memories_holds_exactly_up_to_its_size_and_its_budget(used, size, room):
    found = verdicts(
        declare(), with_regions(RegionUse("sram", "ram", 0, 1), RegionUse("dtcm", "ram", used, size, room))
    )
    assert found["dtcm", "capacity"].ok == (used <= size) and found["sram", "capacity"].ok
    assert ("dtcm", "budget") in found if room else ("dtcm", "budget") not in found
    if room:
        assert found["dtcm", "budget"].ok == (used <= room) and found["dtcm", "budget"].margin == room - used


def test_a_memory_one_byte_too_small_is_named_with_that_byte():
    found = verdicts(declare(), with_regions(RegionUse("sram", "ram", 0, 1), RegionUse("dtcm", "ram", 131073, 131072)))
    assert found["dtcm", "capacity"].why == "dtcm over the device's capacity by 1 B (131,073 B of 131,072 B)"
    assert not found["dtcm", "capacity"].ok and found["ram", "capacity"].ok


def test_one_memory_of_a_kind_is_ram_or_flash_and_no_line_of_its_own():
    found = verdicts(declare(), with_regions(RegionUse("rom", "flash", 1, 1), RegionUse("sram", "ram", 1, 1)))
    assert set(found) == {("ram", "capacity"), ("flash", "capacity")}


def test_a_declared_pair_without_a_result_fails():
    (verdict,) = verdicts(declare(), None).values()
    assert not verdict.ok and verdict.margin is None
    assert "no data" in verdict.why and "out/compile/a/x86-64/footprint.json" in verdict.why


def test_every_declared_pair_has_a_verdict():
    params = Params.model_validate(
        {"models": {"a": {"source": "a"}, "b": {"source": "b"}}, "targets": {"x86-64": {}, "rpi4": {}}}
    )
    judged = judge(params, {("b", "rpi4"): result(model="b", target="rpi4")}, DEVICES | {"rpi4": Device()})
    assert {(v.model, v.target) for v in judged} == {(m, t) for m in "ab" for t in ("x86-64", "rpi4")}


@given(
    predicted=st.integers(min_value=0, max_value=1 << 33),
    extra=st.integers(min_value=0, max_value=1 << 30),
    page=st.sampled_from([4096, 16384]),
)
def test_measuring_more_than_predicted_fails_beyond_two_percent_in_whole_pages_and_two_pages(predicted, extra, page):
    device = {"x86-64": Device(ram=1 << 40)}
    assert ("ram", "measured") not in verdicts(declare(), result(ram=predicted), device)
    found = result(ram=predicted, measured_ram=predicted + extra, page=page)
    allowed = -(-(predicted + predicted * 2 // 100) // page) * page + 2 * page
    assert verdicts(declare(), found, device)["ram", "measured"].ok == (predicted + extra <= allowed)


def test_a_library_that_did_not_run_is_remarked_and_does_not_fail():
    found = result(ran=False, how="not-run: no qemu-aarch64", latency_ms=None, max_abs_error=None, max_rel_error=None)
    assert remarks({("a", "x86-64"): found}) == ["a @ x86-64: not executed (not-run: no qemu-aarch64)"]
    assert all(verdict.ok for verdict in verdicts(declare(), found).values())


def test_quantised_models_are_described_and_change_no_verdict():
    given = GivenAgreement(3, (OutputAgreement("y", 100, 3, 1, 10, 9), OutputAgreement("z", 10)))
    plain = result(max_abs_error=0.0)
    found = replace(
        plain, measured=replace(plain.measured, given=given),
        quantised=BesideFloats(0.5, RamAndWeights(1024, 2048), RamAndWeights(4096, 8192)),
    )  # fmt: skip
    assert information({("a", "x86-64"): plain}) == [] and remarks({("a", "x86-64"): found}) == []
    (said,) = information({("a", "x86-64"): found})
    assert said == (
        "a @ x86-64: 50% of its multiplications on integers, ram 1.0 KiB (as floats 4.0 KiB), weights 2.0 KiB (as floats "
        "8.0 KiB), at most 1 LSB from the model as given (3.00% of elements differ), 90.0% of its decisions"
    )
    assert verdicts(declare(), found) == verdicts(declare(), plain)


@given(base=SIZES, now=SIZES, percent=st.integers(min_value=0, max_value=300))
def test_growth_in_percent_is_of_the_earlier_figure(base, now, percent):
    previous = {("a", "x86-64"): result(ram=base)}
    found = verdicts(
        declare(),
        result(ram=now),
        {"x86-64": Device(ram=1 << 41)},
        previous=previous,
        growth=parse_growth(f"{percent}%"),
    )
    assert found["ram", "growth"].ok == (100 * now <= (100 + percent) * base)
    assert found["flash", "growth"].ok


def test_a_pair_without_an_earlier_figure_is_not_compared():
    assert ("ram", "growth") not in verdicts(declare(), result(), previous={}, growth=parse_growth("0"))


def declare_with(**target) -> Params:
    return Params.model_validate({"models": {"a": {"source": "a"}}, "targets": {"x86-64": target}})


def test_limits_of_a_run_hold_exactly_up_to_their_figures():
    limits = {"latency": "1.5ms", "instructions": 1000, "stack": "1KiB"}
    found = verdicts(declare_with(budget=limits), result(latency_ms=1.5, instructions=1000, stack=1024))
    assert all(found[name, "budget"].ok for name in limits)
    found = verdicts(declare_with(budget=limits), result(latency_ms=1.75, instructions=1001, stack=1025))
    assert [found[name, "budget"].why for name in limits] == [
        "latency over budget by 0.25 ms (1.75 ms of 1.50 ms)",
        "instructions over budget by 1 (1,001 of 1,000)",
        "stack over budget by 1 B (1,025 B of 1,024 B)",
    ]


def test_the_latency_of_a_board_is_the_most_of_its_estimate():
    board = result(latency_ms=None, estimated={"cycles": [20_000, 30_000, 40_000], "mhz": 20})
    for limit, ok in (("2ms", True), ("1.9ms", False)):
        found = verdicts(declare_with(budget={"latency": limit}), board)["latency", "budget"]
        assert found.ok == ok and found.used == 2.0 and "about 1.5 ms at 20 MHz (1 ms to 2 ms, estimated)" in found.why


def test_a_limit_of_one_model_wins_and_null_lifts_it():
    limits = {"budget": {"latency": "1ms", "stack": 1}, "budgets": {"a": {"latency": "2ms", "stack": None}}}
    found = verdicts(declare_with(**limits), result(latency_ms=1.5, stack=9))
    assert found["latency", "budget"].ok and ("stack", "budget") not in found


def test_a_limit_of_what_was_not_measured_is_no_pass():
    found = verdicts(declare_with(budget={"instructions": 5}), result())["instructions", "budget"]
    assert not found.ok and not found.checked and "instructions was not measured (native)" in found.why


def grown(now: int, accepted: dict | None = None):
    params = declare_with(**({"accepted-growth": {"a": accepted}} if accepted else {}))
    past = {("a", "x86-64"): result(ram=1000)}
    return verdicts(params, result(ram=now), previous=past, growth=parse_growth("0"))["ram", "growth"]


@given(now=st.integers(1001, 5000), accepted=st.integers(1, 5000))
def test_accepted_growth_holds_up_to_its_size_and_no_further(now, accepted):
    found = grown(now, {"ram": accepted, "reason": "a wider head"})
    assert found.ok == (now <= accepted) and found.base == 1000
    assert ("a wider head" in found.note) == found.ok


def test_growth_that_is_refused_says_how_to_accept_it():
    assert "write accepted-growth: {a: {ram: 1500, reason: …}} under targets.x86-64" in grown(1500).why
    assert "1.4 KiB are accepted" in grown(1500, {"ram": 1400, "reason": "a wider head"}).why
    assert not grown(1500, {"flash": 9000, "reason": "more layers"}).ok


def test_what_is_printed_for_refused_growths_can_be_pasted_at_once_and_accepts_them_all(tmp_path):
    file = tmp_path / "params.yaml"
    models, reason = "models: {a: {source: a.onnx}, b: {source: b.onnx}, c: {source: c.onnx}}", 'one: "more"'
    known = {"accepted-growth": {"a": {"ram": 1100, "reason": reason}, "c": {"flash": 7, "reason": "c"}}}
    file.write_text(f"{models}\ntargets: {{x86-64: {json.dumps(known)}}}")
    past = {(model, "x86-64"): replace(result(ram=1000, flash=1000), model=model) for model in "ab"}
    now = {(model, "x86-64"): replace(result(ram=2000, flash=3000), model=model) for model in "ab"}

    def refused():
        found = judge(load_params(file), now, DEVICES, past, parse_growth("0"))
        return [each.why for each in found if each.limit_kind == "growth" and not each.ok]

    (line,) = re.findall(r"write (accepted-growth: .*) under targets.x86-64 instead", " ".join(refused()))
    file.write_text(f"{models}\ntargets: {{x86-64: {{{line}}}}}")
    assert not refused()
    kept = load_params(file).targets["x86-64"].accepted_growth
    assert kept["a"].reason == reason and kept["c"].flash == 7


def neighbours(*found, device=DEVICES["x86-64"], **target):
    names = [each.model for each in found]
    params = Params.model_validate(
        {"models": {name: {"source": name} for name in names}, "targets": {"x86-64": target}}
    )
    return [
        v
        for v in judge(params, {(each.model, "x86-64"): each for each in found}, {"x86-64": device})
        if v.quantity.startswith("sum")
    ]


@given(rams=st.lists(st.integers(1, 1 << 30), min_size=2, max_size=4), capacity=st.integers(1, 1 << 32))
def test_models_on_one_device_must_fit_it_together(rams, capacity):
    ram, flash = neighbours(
        *(result(model=f"m{i}", ram=each) for i, each in enumerate(rams)), device=Device(ram=capacity)
    )
    assert (ram.model, ram.used, ram.ok) == ("all models", sum(rams), sum(rams) <= capacity)
    assert flash.used == len(rams) * MIB


def test_the_largest_stack_counts_once_and_one_arena_is_an_advice():
    def with_stack(model: str, stack: int):
        found = result(model=model, ram=1000)
        return replace(found, best=replace(found.best, ram=1000 + stack, stack=stack))

    ram, _ = neighbours(with_stack("a", 10), with_stack("b", 30), device=Device(ram=2000))
    assert ram.used == 2030 and not ram.ok and "One arena for all (`bind`) leaves 1.0 KiB" in ram.why


def test_one_model_or_models_apart_have_no_sum():
    assert neighbours(result()) == [] == neighbours(result(), result(model="b"), together=False)
