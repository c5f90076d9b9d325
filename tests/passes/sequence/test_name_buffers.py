"""Buffers are called as people call them in their model."""

from __future__ import annotations

from dataclasses import replace

from onnx import TensorProto, helper

from passfit.passes.sequence.name_buffers import name_buffers
from passfit.program import Buffer

from ...strategies import chain


def model(*nodes):
    shape = [helper.make_tensor_value_info(name, TensorProto.UINT8, [640]) for name in ("x", "y")]
    made = [helper.make_node("Relu", ["x"], list(outputs), name=name) for name, *outputs in nodes]
    return helper.make_model(helper.make_graph(made, "main", shape[:1], shape[1:]))


def named(program, *names):
    return replace(
        program, buffers=tuple(Buffer(name, b.nbytes) for name, b in zip(names, program.buffers, strict=True))
    )


def names(program, variables, *nodes):
    return [buffer.name for buffer in name_buffers(program, variables, model(*nodes)).buffers]


def test_ports_keep_their_names_and_a_fused_result_has_that_of_the_last_node():
    program = named(chain(64, 64, 64), "in_", "lv1", "gv")
    variables = {"lv1": ("conv", "relu"), "gv": ("pool",)}
    nodes = ("conv", "c"), ("relu", "r"), ("pool", "p")
    expected = [program.inputs[0].name, "r", program.outputs[0].name]
    assert names(program, variables, *nodes) == expected


def test_what_a_node_computes_on_the_way_is_numbered():
    program = named(chain(64, 64, 64, 64, 64), "in_", "lv1", "lv2", "lv3", "gv")
    variables = {"lv1": ("s",), "lv2": ("s",), "lv3": ("s",)}
    assert names(program, variables, ("s", "soft"))[1:4] == ["soft#1", "soft#2", "soft"]


def test_on_the_way_to_an_output_all_are_numbered():
    program = named(chain(64, 64, 64), "in_", "lv1", "gv")
    output = program.outputs[0].name
    assert names(program, {"lv1": ("s",), "gv": ("s",)}, ("s", output))[1:] == [f"{output}#1", output]


def test_outputs_of_a_node_are_told_apart_only_where_one_kernel_writes_them_all():
    program = named(chain(64, 64, 64, 64), "in_", "lv1", "lv2", "gv")
    variables = {"lv1": ("split",), "lv2": ("split",)}
    assert names(program, variables, ("split", "a", "b"))[1:3] == ["split#1", "split"]
    two = replace(program.steps[0], writes=(1, 2))
    program = replace(program, steps=(two, program.steps[2]))
    assert names(program, variables, ("split", "a", "b"))[1:3] == ["a", "b"]


def test_a_buffer_nobody_knows_stays_as_it_is():
    program = named(chain(64, 64, 64), "in_", "lv1", "gv")
    assert names(program, {})[1] == "lv1"
    again = name_buffers(program, {}, model())
    assert (again.steps, again.tensors) == (program.steps, program.tensors)
