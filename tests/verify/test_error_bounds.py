"""Test the error bounds on networks in numpy: another order of sums passes, a wrong kernel does not."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from passfit.verify.compare import Case, errors_of
from passfit.verify.error_bounds import SLACK, Distance, allowed_error, believable

sizes = st.floats(0, 1e6)
distances = st.builds(Distance, sizes, sizes)
TOLERANCE = 1e-4


@given(sizes, sizes, sizes, distances)
def test_what_onnx_runtime_may_a_library_may(tolerance, scale, magnitude, reference):
    limit = allowed_error(tolerance, scale, magnitude, 2.0**-23, reference)
    assert reference.within(limit)
    assert limit.largest >= tolerance * scale and limit.rms >= tolerance * scale


@given(sizes, sizes, sizes, distances, distances)
def test_a_worse_reference_never_narrows_the_bound(tolerance, scale, magnitude, one, other):
    limit = allowed_error(tolerance, scale, magnitude, 2.0**-23, one)
    both = allowed_error(tolerance, scale, magnitude, 2.0**-23, Distance.most([one, other]))
    assert limit.within(both)


@given(st.lists(st.floats(0, 1e300), min_size=1, max_size=20))
def test_the_root_mean_square_lies_between_mean_and_largest(errors):
    found = Distance.of(np.array(errors))
    assert np.mean(errors) * (1 - 1e-9) <= found.rms <= found.largest * (1 + 1e-9)


@given(distances, distances, sizes)
def test_a_distance_is_believed_only_as_far_as_rounding_or_the_floor_goes(reference, rounding, floor):
    assert believable(reference, rounding, floor) == (reference.largest <= max(floor, SLACK * rounding.largest))


def network(seed: int, classes: int, offset: float):
    """Make inputs of a layer of `classes` products in float32; a large `offset` makes outputs nearly equal."""
    random = np.random.default_rng(seed)
    weights = random.normal(0, 0.1, (classes, 200)).astype(np.float32)
    return random.normal(0, 1, (4, 200)).astype(np.float32), weights, np.float32(offset)


def softmax(logits):
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def forwards(x, weights, offset):
    """Sum each product from first to last, rounding each time."""
    return np.cumsum(x[:, None] * weights[None], axis=2, dtype=x.dtype)[..., -1] + offset


def judged(head, x, weights, offset, found):
    wide = head(x.astype(np.float64) @ weights.T.astype(np.float64) + np.float64(offset))
    runtime = head(x @ weights.T + offset).astype(np.float32)
    case = Case({}, {"y": runtime}, {"y": runtime}, {"y": wide})
    errors = errors_of("y", [{"y": found.astype(np.float32)}], [case], TOLERANCE)
    return errors.library.within(errors.allowed)


#: 0 and 1000: outputs of any kind, and outputs that differ by less than one unit in the last place in a thousand
parts = st.tuples(st.integers(0, 1000), st.sampled_from([1, 3, 64]), st.sampled_from([0.0, 1e3, 1e6]))


@given(parts)
def test_another_order_of_sums_passes_however_constant_the_output_is(drawn):
    x, weights, offset = network(*drawn)

    def plain(logits):
        return logits

    assert judged(plain, x, weights, offset, forwards(x, weights, offset))


@given(parts.filter(lambda drawn: drawn[2] < 1e6), st.integers(0, 199))
def test_a_dropped_channel_never_passes(drawn, channel):
    x, weights, offset = network(*drawn)
    broken = weights.copy()
    broken[:, channel] = 0

    def plain(logits):
        return logits

    if np.abs(x[:, channel, None] * weights[None, :, channel]).max() > 1e-2:
        assert not judged(plain, x, weights, offset, forwards(x, broken, offset))


def test_a_softmax_over_18000_classes_passes_and_one_of_a_wrong_kernel_does_not():
    x, weights, offset = network(0, 18_000, 0.0)
    weights *= np.float32(30)  # sharp: errors of logits show in probabilities
    assert judged(softmax, x, weights, offset, softmax(forwards(x, weights, offset)))
    broken = weights.copy()
    broken[:, 7] = 0
    assert not judged(softmax, x, weights, offset, softmax(forwards(x, broken, offset)))
