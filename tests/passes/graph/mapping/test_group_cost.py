"""The model of fused groups, on kernels whose loops are known."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.tvm


def _calls(shapes, body):
    from passfit.passes.graph.mapping.kernel_calls import read_calls
    from passfit.passes.sequence.catalogue import parse_spec

    from ....kernels.programs import module_of

    called = read_calls(parse_spec("legalize").apply(module_of(shapes, body)))
    assert called is not None
    return called.calls, frozenset(called.bindings)


def _whole(shapes, body):
    """The model of all calls as one group."""
    from passfit.passes.graph.mapping.group_cost import model_of

    return model_of(*_calls(shapes, body))


def test_a_chain_moves_its_ends_alone():
    from tvm import relax

    model = _whole([(4, 8)], lambda x: relax.op.nn.relu(relax.op.exp(relax.op.negative(x))))
    assert model.moved == 2 * 4 * 8 * 4 and model.calls == 1
    assert model.redone == model.workspace == 0 and model.in_place == {0}


def test_a_value_read_by_two_reductions_is_done_again_and_a_softmax_keeps_its_own():
    from tvm import relax

    op = relax.op

    def softmax(x):
        powers = op.exp(op.subtract(x, op.max(x, [1], True)))
        return op.divide(powers, op.sum(powers, [1], True))

    def spread(x):
        shifted = op.add(x, x)
        return op.divide(op.max(shifted, [1], True), op.sum(shifted, [1], True))

    assert _whole([(4, 16)], softmax).redone == 0
    assert _whole([(4, 16)], spread).redone == 4 * 16
    assert _whole([(4, 16)], softmax).workspace == 0 and _whole([(4, 16)], softmax).in_place == {0}


def test_overlapping_windows_over_sums_are_not_legal_disjoint_ones_do_nothing_again():
    from tvm import relax

    from ....kernels.programs import weight

    def pooled(stride):
        return lambda x: relax.op.nn.max_pool2d(relax.op.nn.conv2d(x, weight(2, 2, 3, 3)), (2, 2), (stride, stride))

    assert _whole([(1, 2, 10, 10)], pooled(1)) is None
    assert _whole([(1, 2, 10, 10)], pooled(2)).redone == 0


def test_a_reduction_that_two_others_read_by_rows_keeps_a_row():
    from tvm import relax

    op = relax.op

    def scores(q, k):
        found = op.matmul(q, k)
        return op.subtract(found, op.max(found, [1], True))

    assert _whole([(4, 8), (8, 64)], scores).workspace == 64 * 4
    assert _whole([(4, 8), (8, 64)], scores).redone == 0


def test_a_copy_to_one_place_of_its_result_costs_nothing_alone():
    from tvm import relax

    from passfit.passes.graph.mapping.group_cost import model_of

    op = relax.op
    calls, numbers = _calls([(2, 3)], lambda x: op.reshape(op.exp(x), (6,)))
    assert model_of(calls, frozenset({max(numbers)})).time == 0
    calls, numbers = _calls([(2, 3)], lambda x: op.permute_dims(op.exp(x), [1, 0]))
    assert model_of(calls, frozenset({max(numbers)})).time > 0


def test_an_operand_read_at_another_place_too_is_not_in_place() -> None:
    from tvm import relax

    def flipped(x):
        y = relax.op.nn.relu(x)
        return relax.op.add(y, relax.op.permute_dims(y, [1, 0]))

    assert not _whole([(6, 6)], flipped).in_place
    assert len(_whole([(6, 6)], lambda x: relax.op.add(relax.op.exp(x), relax.op.nn.relu(x))).in_place) == 1


def _networks():
    """Layers that repeat, sizes that do not, and values that several kernels read."""
    from tvm import relax

    op = relax.op

    def layer(x):
        powers = op.exp(op.subtract(x, op.max(x, [1], True)))
        return op.add(op.divide(powers, op.sum(powers, [1], True)), op.permute_dims(op.nn.relu(x), [1, 0]))

    return [_calls([(side, side)], lambda x: layer(layer(x))) for side in (6, 8)]


def test_groups_of_one_form_have_the_model_made_for_each_alone():
    from passfit.passes.graph.mapping.group_cost import _model, model_of
    from passfit.passes.graph.mapping.group_form import group_form
    from passfit.passes.graph.mapping.plan_account import group_of

    forms = []
    for calls, bindings in _networks():
        exist = [frozenset(range(first)) | frozenset(range(0, 99, every)) for first in bindings for every in (5, 7, 99)]
        found = {group_of(calls, each, result) for each in exist for result in bindings}
        groups = [group for group in found if len(group) > 1]
        forms += [group_form(calls, group)[0] for group in groups]
        assert [model_of(calls, group) for group in groups] == [_model(calls, group) for group in groups]
    assert len(set(forms)) < len(forms)


def test_a_form_tells_sizes_and_operands_apart():
    from tvm import relax

    from passfit.passes.graph.mapping.group_form import group_form

    op = relax.op
    bodies = [
        lambda x, y: op.nn.relu(op.add(x, y)),
        lambda x, y: op.nn.relu(op.add(x, x)),
        lambda x, y: op.add(x, op.nn.relu(y)),
        lambda x, y: op.add(op.nn.relu(y), x),
    ]
    asked = [([shape, shape], body) for shape in ((4, 8), (8, 8)) for body in bodies]
    assert len({group_form(*_calls(*each))[0] for each in asked}) == len(asked)
    assert group_form(*_calls(*asked[0]))[0] == group_form(*_calls(*asked[0]))[0]


def test_an_operand_that_sums_read_before_it_is_written_over_is_in_place() -> None:
    from tvm import relax

    op = relax.op

    def centred(axes):
        return lambda x: op.subtract(x, op.mean(x, axes, True))

    def squared(x):
        return op.nn.relu(op.matmul(x, x))

    for axes in ([1], [0], [0, 1]):
        assert len(_whole([(6, 6)], centred(axes)).in_place) == 1
    assert not _whole([(6, 6)], squared).in_place
