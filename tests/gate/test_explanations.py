import json
from dataclasses import replace

import pytest

from passfit.artifacts.places import kernels_file
from passfit.gate import run_gate
from passfit.gate.explanations import _slowest, growth_cause
from passfit.memory import write_plan
from passfit.memory.files.plan_file import CodePart
from passfit.memory.measured import Measured
from passfit.program import Weight
from passfit.report.compare import compare
from passfit.verify.measure.run_cycles import FunctionCycles, RunCycles

from ..report.results import result, saved
from ..strategies import chain
from .samples import PARAMS

KIB = 1024


@pytest.fixture
def over(repo):
    """Return a function that adds a result with a plan and commits it, or leaves it uncommitted."""

    def make(*sizes: int, tag: str = ""):
        plan = saved(chain(*sizes))
        place = repo.footprint(ram=plan.plan.arena)
        write_plan(plan, place.with_name("plan.json"))
        repo.keep(ram=plan.plan.arena)
        if tag:
            repo.commit(tag)
        return repo

    return make


def test_a_growth_names_its_node_and_that_nothing_lowers_it(over):
    over(64, 512, 256, 64, tag="then")
    repo = over(64, 512, 1024, 64)
    result = run_gate(repo.path, against="then", explain=True)
    assert result.exit_code == 1
    causes = [line for line in result.text.splitlines() if line.startswith("why")]
    assert causes[0].startswith("why   a @ x86-64: ram grew: arena +768 B (+100.0%) to 1.5 KiB")
    assert causes[1] == "why   a @ x86-64: no setting that could be tried lowers it"


def test_with_plans_of_both_sides_the_buffer_and_its_node_are_named():
    found = compare(result(chain(64, 512, 256, 64)), result(chain(64, 512, 1024, 64)))
    assert growth_cause(found, "ram").endswith("; b2 takes 768 B more at the peak (256 B before), made by k1 of node1")


def test_over_budget_names_what_is_alive_at_the_peak(over):
    repo = over(64, 600 * KIB, 256 * KIB, 64)
    causes = json.loads(run_gate(repo.path, format="json", explain=True).text)["causes"]
    assert causes[0] == "a @ x86-64: the peak is at k01 k, of 856.0 KiB: b1 600.0 KiB of node0, b2 256.0 KiB of node1"


@pytest.mark.parametrize(
    ("target", "budget", "said"),
    [
        ("x86-64", "{ram: 600KiB}", "beaglebone is the smallest that fits; x86-64 lacks 100.0 KiB of ram"),
        ("stm32f446", "{}", "stm32h743 is the smallest that fits; stm32f446 lacks 572.0 KiB of ram and 512.0 KiB of flash"),
        ("stm32f446", "{ram: 690KiB, flash: 2MiB}", "stm32h743 is the smallest that fits; stm32f446 lacks 10.0 KiB of ram"),
    ],
)  # fmt: skip
def test_the_last_line_of_fit_says_which_device_of_its_kind_would_hold_it_and_what_is_lacking(
    repo, target, budget, said
):
    """Sizes on others are those built here, with the code scaled: 768 KiB of stm32u585 would hold the ram, but not with its budget."""
    own = "" if target == "x86-64" else "\n  stm32u585: {budget: {ram: 64KiB}}"
    repo.params(f"models: {{a: {{source: a.onnx}}}}\ntargets:\n  {target}: {{budget: {budget}}}{own}\n")
    repo.footprint("a", target, ram=700 * KIB, flash=1024 * KIB)
    causes = json.loads(run_gate(repo.path, format="json", explain=True).text)["causes"]
    assert [each for each in causes if "is the smallest that fits" in each] == [f"a @ {target}: {said}"]


def test_too_slow_names_the_slowest_kernels_where_they_are_timed(over):
    repo = over(64, 512, 256, 64)
    repo.params(PARAMS.replace("ram: 600KiB", "ram: 600KiB, latency: 1ms"))
    repo.footprint(ram=1024)
    repo.keep(ram=1024)
    untimed = json.loads(run_gate(repo.path, format="json", explain=True).text)["causes"]
    assert "a @ x86-64: its kernels are not timed" in untimed[0]
    place = repo.path / kernels_file("a", "x86-64")
    repo.write(place, {"why": "profile.kernels is false", "run_ns": 0, "kernels": []})  # as the stage does by default
    off = json.loads(run_gate(repo.path, format="json", explain=True).text)["causes"]
    assert off[0] == "a @ x86-64: its kernels are not timed: profile.kernels is false"
    kernels = [
        {"step": step, "kernel": "k", "nodes": [f"node{step}"], "ns": ns, "least_ns": 1}
        for step, ns in enumerate((100, 700, 200))
    ]
    repo.write(place, {"run_ns": 1000, "kernels": kernels})
    timed = json.loads(run_gate(repo.path, format="json", explain=True).text)["causes"]
    assert timed[0].endswith("the most of its time: k01 k 70% of node1, k02 k 20% of node2")


def test_an_overrun_of_flash_names_the_largest_initializers_and_kernels(repo):
    weights = (
        Weight("fc.weight", 900 * KIB, "0", ("fc.weight",)),
        Weight("conv.weight", 4 * KIB, "1", ("conv.weight",)),
    )
    plan = saved(replace(chain(64, 64), weights=weights))
    code = (CodePart("fused_conv2d_relu", 30 * KIB, ("conv", "relu")), CodePart("matmul", KIB, ("fc",)))
    repo.params(PARAMS.replace("ram: 600KiB", "flash: 64KiB"))
    write_plan(replace(plan, code=code), repo.footprint().with_name("plan.json"))
    causes = json.loads(run_gate(repo.path, format="json", explain=True).text)["causes"]
    assert causes[0].endswith(
        "the largest parts: fc.weight 900.0 KiB, the code of fused_conv2d_relu 30.0 KiB (conv … relu (2 nodes)), "
        "conv.weight 4.0 KiB"
    )


def test_a_comment_is_one_screen_and_folds_the_table(over):
    repo = over(64, 600 * KIB, 256 * KIB, 64)
    text = run_gate(repo.path, format="md", explain=True).text
    head, _, table = text.partition("<details>")
    assert len(head.splitlines()) <= 12 and "b1 600.0 KiB of node0" in head
    assert "| a | x86-64 | ram budget |" in table and table.rstrip().endswith("</details>")


@pytest.mark.parametrize("format", ["junit", "github"])
def test_other_formats_tell_it_too(over, format):
    assert (
        "b1 600.0 KiB of node0" in run_gate(over(64, 600 * KIB, 256 * KIB, 64).path, format=format, explain=True).text
    )


def test_without_failures_there_is_nothing_to_explain(over):
    repo = over(64, 64)
    assert json.loads(run_gate(repo.path, format="json", explain=True).text)["causes"] == []
    assert "causes" not in json.loads(run_gate(repo.path, format="json").text)
    assert run_gate(repo.path, explain=True).text == run_gate(repo.path).text


def test_boards_name_the_nodes_of_most_cycles_and_no_timing_of_kernels():
    """Kernels are timed natively only: where an emulator runs the library, `profile: kernels` gives nothing."""
    emulated = result()
    emulated = replace(
        emulated, kernels=None, footprint=replace(emulated.footprint, measured=Measured(True, "mps2-an386"))
    )
    assert "profile: {kernels" not in emulated.why_untimed and "mps2-an386" in _slowest(emulated)
    assert "profile: {kernels" in replace(emulated, footprint=result().footprint).why_untimed
    kernels = [call.step.kernel for call in emulated.saved.program.calls()]
    counted = RunCycles(
        100, (FunctionCycles(kernels[0], 10, (60, 75, 90)), FunctionCycles("__aeabi_memcpy", 3, (20, 25, 30)))
    )
    assert _slowest(replace(emulated, cycles=counted)).startswith("the nodes of most cycles, estimated: ")
