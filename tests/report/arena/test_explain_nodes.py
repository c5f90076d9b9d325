"""A run node by node: nothing of multiply-adds, instructions and cycles is lost, whichever kernels the nodes became."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from passfit.program import Program, Weight
from passfit.report.arena.explain_nodes import explain_nodes, nodes_table
from passfit.verify.measure.run_cycles import FunctionCycles, RunCycles

from ...memory.loops import with_loop
from ...strategies import chain, programs
from ..rendered import words
from ..results import saved

FUNCTIONS = (
    FunctionCycles("conv_relu_2", 10, (9, 12, 20)),
    FunctionCycles("conv_relu", 5, (5, 6, 7)),
    FunctionCycles("conv", 30, (30, 40, 50)),
    FunctionCycles("__aeabi_memcpy", 3, (3, 4, 5)),
)
COUNTED = RunCycles(2, FUNCTIONS)


def renamed(program: Program, *steps: tuple[str, tuple[str, ...]]) -> Program:
    pairs = zip(program.steps, steps, strict=True)
    return replace(program, steps=tuple(replace(step, kernel=name, nodes=nodes) for step, (name, nodes) in pairs))


def test_functions_are_added_up_by_node_and_the_slowest_comes_first():
    program = renamed(chain(64, 512, 64), ("conv_relu", ("second", "third")), ("conv", ("first",)))
    found = explain_nodes(saved(program), None, COUNTED)
    assert [(part.name, part.instructions, part.cycles) for part in found.parts] == [
        ("first", 30, (30, 40, 50)),
        ("second, third", 15, (14, 18, 27)),
        ("memory and arithmetic functions", 3, (3, 4, 5)),
    ]
    assert found.cycles == 62 and [part.read for part in found.parts] == [512, 64, 0]
    said = words(nodes_table(found))
    assert "0.031 ms at 2 MHz" in said and "first – 0 B 512 B 40 30 0.02 ms" in said and "MACs (" not in said


def test_a_function_of_several_calls_is_shared_by_their_nodes():
    program = renamed(chain(64, 512, 64), ("conv", ("one",)), ("conv", ("two",)))
    found = explain_nodes(saved(program), None, COUNTED)
    assert {part.name: part.cycles for part in found.parts if part.nodes} == {
        "one": (22, 29, 38),
        "two": (22, 29, 38),
    }


def test_multiply_adds_are_those_of_whole_kernels_in_each_iteration():
    whole = replace(with_loop(), macs={"wide": 7})
    found = explain_nodes(saved(chain(64, 64)), whole, None)
    calls = [call for call in whole.program.calls() if call.step.kernel == "wide"]
    assert sum(part.macs or 0 for part in found.parts) == 7 * sum(call.runs for call in calls) > 7
    assert found.summary.startswith(f"{7 * sum(call.runs for call in calls)} MACs") and "cycles" not in found.columns


def test_weights_count_once_and_what_is_read_as_often_as_it_is_read():
    plain = chain(64, 64, 64)
    weight = replace(plain.tensors[0], buffer=None, weight=0)
    steps = tuple(replace(step, reads=(*step.reads, len(plain.tensors)), nodes=("n",)) for step in plain.steps)
    program = replace(plain, tensors=(*plain.tensors, weight), weights=(Weight("w", weight.nbytes, "0"),), steps=steps)
    (part,) = explain_nodes(saved(program), None, None).parts
    assert (part.weights, part.read) == (weight.nbytes, 2 * (64 + weight.nbytes))


@given(programs())
def test_every_kernel_is_in_one_row_and_no_row_is_lost_in_the_table(program: Program):
    found = explain_nodes(saved(program), None, COUNTED)
    names = [part.name for part in found.parts]
    assert len(names) == len(set(names)) and {", ".join(s.nodes) or s.kernel for s in program.steps} <= set(names)
    assert sum(part.instructions or 0 for part in found.parts) == 48
    for most in (1, len(found.parts)):
        rows = list(found.rows(most))
        assert [part for part, _ in rows] == [*found.parts[:most], *([None] if len(found.parts) > most else [])]
