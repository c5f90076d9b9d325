"""Attention computed head by head is attention, however an exporter writes it."""

import numpy as np
import pytest

pytest.importorskip("tvm")

from tvm import relax

from passfit.passes.sequence.catalogue import parse_spec

from ...kernels.programs import lowered, module_of, random_inputs, run, weight

pytestmark = pytest.mark.tvm
_op = relax.op
TOKENS, HEADS, FEATURES = 5, 3, 4
WIDTH = HEADS * FEATURES


def _emit(expr: relax.Expr) -> relax.Var:
    return relax.BlockBuilder.current().emit(expr)


def _linear(x, units=WIDTH, seed=0):
    return _emit(_op.add(_emit(_op.matmul(x, weight(WIDTH, units, seed=seed))), weight(units, seed=seed + 9)))


def _attend(query, key, value, batch=1):
    """Return the joined heads of operands of batch × heads × tokens × features."""
    scores = _emit(_op.matmul(query, _emit(_op.permute_dims(key, (0, 1, 3, 2)))))
    shares = _emit(_op.nn.softmax(_emit(_op.divide(scores, relax.const(2.0)))))
    means = _emit(_op.permute_dims(_emit(_op.matmul(shares, value)), (0, 2, 1, 3)))
    return _emit(_op.reshape(means, (batch, TOKENS, WIDTH)))


def _by_head(x, batch=1):
    return _emit(_op.permute_dims(_emit(_op.reshape(x, (batch, TOKENS, HEADS, FEATURES))), (0, 2, 1, 3)))


def separate(x, batch=1):
    return _linear(_attend(*(_by_head(_linear(x, seed=n), batch) for n in range(3)), batch), seed=3)


def two_at_once(x):
    return separate(x, 2)


def gathered(x):
    """Build one projection for all three, apart by a gather, as timm does."""
    every = _emit(_op.reshape(_linear(x, 3 * WIDTH), (1, TOKENS, 3, HEADS, FEATURES)))
    every = _emit(_op.permute_dims(every, (2, 0, 3, 1, 4)))
    return _linear(_attend(*(_emit(_op.take(every, relax.const(n, "int64"), 0)) for n in range(3))), seed=3)


def split(x):
    """Build one projection for all three, apart by a split, as GPT-2 does."""
    parts = _emit(_op.split(_linear(x, 3 * WIDTH), 3, axis=-1))
    return _linear(_attend(*(_by_head(_emit(parts[n])) for n in range(3))), seed=3)


def tokens_first(x):
    """Build torch's own attention: tokens × batch·heads × features, and a product of matrices for the projection."""
    heads = [_emit(_op.reshape(_linear(x, seed=n), (TOKENS, HEADS, FEATURES))) for n in range(3)]
    query, key, value = (_emit(_op.permute_dims(each, (1, 0, 2))) for each in heads)
    scores = _emit(_op.nn.softmax(_emit(_op.matmul(query, _emit(_op.permute_dims(key, (0, 2, 1)))))))
    means = _emit(_op.permute_dims(_emit(_op.matmul(scores, value)), (1, 0, 2)))
    joined = _linear(_emit(_op.reshape(means, (TOKENS, WIDTH))), seed=3)
    return _emit(_op.reshape(joined, (TOKENS, 1, WIDTH)))


def masked(x):
    """Build a mask that is computed, of one for all heads."""
    mask = _emit(_op.reshape(_emit(_op.mean(x, [2])), (1, 1, 1, TOKENS)))
    query, key, value = (_by_head(_linear(x, seed=n)) for n in range(3))
    scores = _emit(_op.add(_emit(_op.matmul(query, _emit(_op.permute_dims(key, (0, 1, 3, 2))))), mask))
    means = _emit(_op.matmul(_emit(_op.nn.softmax(scores)), value))
    joined = _emit(_op.reshape(_emit(_op.permute_dims(means, (0, 2, 1, 3))), (1, TOKENS, WIDTH)))
    return _linear(joined, seed=3)


def clipped(x):
    """Build queries within bounds: an operator of single elements that the rules slice, too."""
    query, key, value = (_by_head(_linear(x, seed=n)) for n in range(3))
    return _linear(_attend(_emit(_op.clip(query, -1, 1)), key, value), seed=3)


X = (1, TOKENS, WIDTH)
FORMS = {
    "separate": (X, separate), "two at once": ((2, TOKENS, WIDTH), two_at_once), "gathered": (X, gathered),
    "split": (X, split), "tokens first": ((TOKENS, 1, WIDTH), tokens_first), "masked": (X, masked),
    "clipped": (X, clipped),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_head_by_head_is_the_same_with_one_product_per_head(name):
    shape, body = FORMS[name]
    tail = ("legalize", "fold-constant", "fuse-operators")
    whole, divided = lowered([shape], body, tail), lowered([shape], body, ("split-heads", *tail))
    inputs = random_inputs(whole)
    (wanted,), (ours,) = run(whole, inputs), run(divided, inputs)
    np.testing.assert_allclose(ours, wanted, rtol=1e-4, atol=1e-5 * float(np.abs(wanted).max()))
    softmaxes = str(parse_spec("split-heads").apply(module_of([shape], body))["main"]).count("softmax")
    assert softmaxes == HEADS
    assert divided.program.weight_bytes <= whole.program.weight_bytes + 64 * 8 * HEADS


def refused(x):
    """Build keys that are given: their heads would have to be cut out of them."""
    key = _emit(_op.reshape(x, (1, TOKENS, HEADS, FEATURES)))
    key = _emit(_op.permute_dims(key, (0, 2, 1, 3)))
    return _linear(_attend(_by_head(_linear(x)), key, key), seed=3)


def test_heads_that_are_not_computed_apart_stay_joined():
    module = module_of([X], refused)
    assert parse_spec("split-heads").apply(module) is module
