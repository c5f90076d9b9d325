"""Every table fits 100 columns, whatever models, kernels, tensors, passes and targets are called."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from passfit.memory import plan_arena
from passfit.memory.footprint import Baseline, Footprint, FootprintReport, Measured, Start
from passfit.memory.measured import Energy
from passfit.program import Buffer, Step
from passfit.report.arena.explain import explain
from passfit.report.arena.explanation_table import explanation_table
from passfit.report.catalogues import passes_table, targets_table
from passfit.report.effects_table import effects_table
from passfit.report.fit import WIDTH, Nodes, nodes_in, shorten
from passfit.report.footprint_table import footprint_table
from passfit.report.front_table import front_table
from passfit.report.kernel_names import kernel_label
from passfit.report.levers import LeversFound
from passfit.report.search_table import knowledge_table, search_table
from passfit.report.tuning_table import tuning_table
from passfit.search.knowledge.knowledge import load_knowledge
from passfit.search.refine.lever import Lever
from passfit.targets.catalogue import load_catalogue
from passfit.tuning.database import Database, LayoutResult, LibraryComparison, TunedKernel

from ..strategies import chain
from .rendered import rendered

#: short ones, and far longer ones than a line
NAMES = st.one_of(
    st.text(min_size=1, max_size=300),
    st.integers(1, 90).map(lambda n: "fused_" + "conv2d1_add2_" * n + "relu"),
    st.sampled_from(["/features/features.18/conv/conv.3/Clip_output_0" * 4, "[bold]", "größe" * 40, "層" * 90]),
)
HUGE = 2**40 - 1


def fits(report) -> bool:
    return all(cell_len(line) <= WIDTH for line in rendered(report).splitlines())


@settings(max_examples=40)
@given(st.lists(NAMES, min_size=4, max_size=4), st.integers(0, 20), st.booleans())
def test_an_explanation_fits(names, nodes, region):
    kernel = f"streamed_{names[0]}" if region else names[0]
    program = chain(*(640 * (n + 1) for n in range(4)))
    behind = tuple(f"{names[1]}{n}" for n in range(nodes))
    steps = tuple(Step(kernel, step.reads, step.writes, behind) for step in program.steps)
    buffers = tuple(Buffer(name, buffer.nbytes) for name, buffer in zip(names, program.buffers, strict=True))
    program = replace(program, name=names[2], steps=steps, buffers=buffers)
    levers = LeversFound((Lever("split", 10, 0.5, (names[0],)), Lever("next", 5, 0.9, (names[3], names[1]))), names[3])
    assert fits(explanation_table(explain(program, plan_arena(program), levers=levers)))


@settings(max_examples=40)
@given(NAMES, NAMES)
def test_a_footprint_fits(model, target):
    sizes = Footprint(*(HUGE for _ in range(8)), False, HUGE, HUGE)
    measured = Measured(
        True, "native", HUGE, 123456.789, 1e-6, 2e-6, HUGE, throughput=1e9 / 3, energy=Energy(f"absent: {model}"),
        compile_seconds=1e6 / 7,
    )  # fmt: skip
    assert fits(footprint_table(FootprintReport(model, target, Start(HUGE, HUGE), sizes, Baseline.of(sizes), measured)))


@settings(max_examples=40)
@given(st.lists(NAMES, min_size=3, max_size=3))
def test_a_search_its_front_and_its_effects_fit(names):
    one, two, three = names
    worth = {"spec": one, "ram": HUGE, "weights": -HUGE, "kernels": -HUGE, "sum": HUGE}
    lever = {"lever": two, "arena": HUGE, "extra_compute": 123.456, "passes": [one]}
    found = {
        "strategy": one, "evaluations": HUGE, "closed": False, "ablation": [worth], "levers": [lever],
        "extra_compute": 0.1, "next": three, "failures": {one: two}, "rejected": {one: two},
    }  # fmt: skip
    assert fits(search_table(found))
    point = {"lever": one, "ram": HUGE, "latency": 1e12, "extra_compute": 12345.0}
    assert fits(
        front_table(
            {
                "unit": "instructions",
                "limit": "1.5x",
                "most": 1e12,
                "points": [point],
                "pareto": [0],
                "chosen": 0,
                "within": True,
            }
        )
    )
    delta = {"ram": HUGE, "sum": -HUGE, "weights": HUGE, "kernels": HUGE}
    passes = [
        {"spec": one, "changed": True, "delta": delta}, {"spec": two, "changed": False, "delta": delta},
        {"spec": three, "changed": False, "delta": delta, "failed": two},
    ]  # fmt: skip
    pairs = [{"first": one, "second": two, "effect": "enables", "alone": {"ram": 0, "sum": 0}, "delta": delta}]
    tried = {"passes": 3, "pairs": 1, "states": 5}
    assert fits(effects_table({"target": three, "passes": passes, "pairs": pairs, "tried": tried}, 1e6, {one: 1e4}))


@settings(max_examples=40)
@given(NAMES, NAMES)
def test_a_tuning_fits(choice, target):
    kernel = TunedKernel("f" * 64, [choice] * 5, HUGE, HUGE, HUGE, choice, {"layouts": HUGE, target: HUGE}, "")
    whole = LibraryComparison("instructions", HUGE, HUGE, False)
    layout = LayoutResult(choice, 1, 1, 1, True, whole=whole, note=choice)
    assert fits(tuning_table(Database(target, {}, unit="instructions", layout=layout, whole=whole, kernels=(kernel,))))


def test_the_catalogues_and_what_is_known_fit(tmp_path):
    assert (
        fits(passes_table())
        and fits(targets_table(load_catalogue(tmp_path)))
        and fits(knowledge_table(load_knowledge()))
    )


@given(st.text(max_size=60), st.integers(1, 40))
def test_a_shortened_text_keeps_its_ends_and_its_room(text, room):
    found = shorten(text, room)
    assert cell_len(found) <= room
    assert found == text or "…" in found


@given(st.lists(NAMES, max_size=8), st.integers(8, 90))
def test_nodes_are_named_within_their_room_and_counted(nodes, room):
    found = nodes_in(tuple(nodes), room)
    assert cell_len(found) <= room
    assert len(nodes) < 2 or f"{len(nodes)} nodes" in found or found.endswith(f" +{len(nodes) - 1}")


def test_nodes_read_as_a_range_or_with_wide_as_a_list():
    nodes = ("conv_12", "add_12", "bn", "mul", "relu_13")
    assert nodes_in(nodes) == "conv_12 … relu_13 (5 nodes)"
    assert nodes_in(nodes, 10) == "conv_12 +4"
    assert Nodes(nodes, wide=True).text == "conv_12, add_12, bn, mul, relu_13"


def test_kernels_have_short_names():
    names = {
        "fused_conv2d12_relu": "k07 conv2d+relu",
        "fused_conv2d1_add1_prelu1": "k07 conv2d+add+prelu",
        "fused_conv2d_add1_tir_clip_multiply": "k07 conv2d+…+multiply",
        "streamed_fused_max_pool2d_tir_tanh_": "k07 max_pool2d+tanh region",
        "fused_leaky_relu8_concatenate_in_place_0_5": "k07 leaky_relu+concatenate",
        "transpose": "k07 transpose",
    }
    assert {name: kernel_label(7, name) for name in names} == names
    assert kernel_label(1234, "fused_") == "k1234 fused_"
