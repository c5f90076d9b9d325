"""Laws of the framework: what replacing values keeps, and what Dataflow knows."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.tvm


def _module(body):
    from ...kernels.programs import module_of

    return module_of(((2, 3),), body)


def _bindings(module) -> list:
    return [binding for block in module["main"].body.blocks for binding in block.bindings]


def test_what_reads_no_replaced_value_stays_the_same_object():
    from tvm import relax

    from passfit.passes.graph.rules.replace_values import replace_values

    module = _module(lambda x: relax.op.add(relax.op.exp(x), relax.op.abs(relax.op.negative(x))))
    exp, negative, absolute, *_ = before = _bindings(module)
    (x,) = module["main"].params
    after = _bindings(replace_values(module, {absolute.var: relax.op.abs(x)}))
    assert [each.var.name for each in after] == [exp.var.name, absolute.var.name, *(e.var.name for e in before[3:])]
    assert after[0].same_as(exp) and negative.var not in {each.var for each in after}


def test_a_value_of_another_type_is_refused():
    from tvm import relax

    from passfit.passes.graph.rules.replace_values import replace_values

    module = _module(lambda x: relax.op.exp(relax.op.abs(x)))
    with pytest.raises(TypeError, match=r"\(2, 3\).*float16"):
        replace_values(module, {_bindings(module)[0].var: relax.op.astype(module["main"].params[0], "float16")})


def test_a_call_that_two_values_share_is_emitted_once_however_deep():
    from tvm import relax

    from passfit.passes.graph.rules.replace_values import replace_values

    module = _module(lambda x: relax.op.add(relax.op.exp(x), relax.op.abs(x)))
    nest = module["main"].params[0]
    for _ in range(3000):
        nest = relax.op.negative(nest)
    one, other, *_ = _bindings(module)
    after = replace_values(module, {one.var: relax.op.sin(nest), other.var: relax.op.cos(nest)})
    relax.analysis.well_formed(after)
    assert len(_bindings(after)) == 3000 + len(_bindings(module))


def test_uses_users_and_outputs_are_counted_through_other_names():
    from tvm import relax

    from passfit.passes.graph.rules.dataflow import Dataflow

    def body(x):
        y = relax.BlockBuilder.current().emit(relax.op.exp(x))
        other = relax.BlockBuilder.current().emit(y)
        return relax.op.add(y, relax.op.multiply(other, other))

    graph = Dataflow(_module(body)["main"])
    (exp, _), (product, _), (total, _) = graph.calls()
    assert (graph.uses(exp), graph.uses(product), graph.uses(total)) == (3, 1, 1)
    assert [graph.operator(user) for user in graph.users(exp)] == ["relax.multiply", "relax.add"]
    assert graph.is_output(total) and not graph.is_output(exp)


def test_extents_and_positions_are_constants():
    from tvm import relax

    from passfit.passes.graph.rules.dataflow import Dataflow

    def body(x):
        extents = relax.op.shape_to_tensor(relax.op.shape_of(x))
        position = relax.op.take(extents, relax.const(1, "int64"), 0)
        return relax.op.take(x, relax.op.subtract(position, relax.const(1, "int64")), 1)

    graph = Dataflow(_module(body)["main"])
    (_, take), *_ = reversed(list(graph.calls()))
    assert graph.constant(take.args[1]) == 2 and str(graph.constant(take.args[1]).dtype) == "int64"
    assert graph.constant(take.args[0]) is None
