"""Check that row windows compute their rows, and read no more than declared."""

import pytest

pytest.importorskip("tvm")

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tvm import relax

from passfit.tir.index_grid import NoMatch
from passfit.tir.row_window import MOST_ROWS, row_window, rows_of

from ...profiles import examples
from ..programs import lowered, weight
from ..windows import Single, check_windows

pytestmark = pytest.mark.tvm
_FEW = settings(max_examples=examples(5), phases=[Phase.generate])
_op = relax.op


def single(shapes, body, passes=("legalize", "fold-constant", "fuse-operators")) -> Single:
    return Single(lowered(shapes, body, passes))


def splits_along(kernel: Single) -> list[int]:
    return [rows.axis for rows in kernel.rows() if rows.operands and rows.extent > 1]


@st.composite
def convolutions(draw):
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    channels, filters = groups * draw(st.sampled_from([1, 2])), groups * draw(st.sampled_from([1, 3]))
    size = (draw(st.sampled_from([1, 2, 3])), draw(st.sampled_from([1, 3])))
    dilation = draw(st.sampled_from([1, 1, 2]))
    padding = [draw(st.integers(0, 2)) for _ in range(4)]
    reach = [dilation * (each - 1) + 1 for each in size]
    sides = [max(draw(st.integers(3, 7)), each) for each in reach]
    options = {"strides": draw(st.integers(1, 4)), "padding": padding, "dilation": dilation, "groups": groups}
    return (1, channels, *sides), (filters, channels // groups, *size), options


@_FEW
@given(convolutions(), st.sampled_from(["none", "bias-relu", "residual"]))
def test_convolutions(case, epilogue):
    shape, filters, options = case

    def body(x):
        result = _op.nn.conv2d(x, weight(*filters), **options)
        if epilogue == "bias-relu":
            return _op.nn.relu(_op.add(result, weight(1, filters[0], 1, 1, seed=2)))
        if epilogue == "residual":
            return _op.multiply(_op.sigmoid(result), weight(filters[0], 1, 1, seed=3))
        return result

    kernel = single([shape], body)
    check_windows(kernel)
    assert set(splits_along(kernel)) >= {axis for axis in (2, 3) if kernel.shape[axis] > 1}


@pytest.mark.parametrize("kind", ["max", "average", "average with padding"])
@pytest.mark.parametrize("size, stride, pad, ceil_mode", [(3, 2, 1, False), (2, 2, 0, True), (2, 3, 1, True)])
def test_poolings(kind, size, stride, pad, ceil_mode):
    def body(x):
        options = {"ceil_mode": ceil_mode}
        if kind != "max":
            options["count_include_pad"] = kind == "average with padding"
        pool = _op.nn.max_pool2d if kind == "max" else _op.nn.avg_pool2d
        return pool(x, (size, size), (stride, stride), (pad, pad), **options)

    kernel = single([(1, 2, 7, 6)], body)
    check_windows(kernel)
    assert splits_along(kernel) == [1, 2, 3]


@pytest.mark.parametrize("mode", ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
@pytest.mark.parametrize("method, rounding", [("nearest_neighbor", "round_prefer_floor"), ("nearest_neighbor", "floor"),
                                              ("nearest_neighbor", "ceil"), ("linear", "")])  # fmt: skip
def test_resized_images(mode, method, rounding):
    """Resize larger along one side, smaller along the other."""

    def body(x):
        options = {"method": method, "coordinate_transformation_mode": mode, "rounding_method": rounding}
        return _op.image.resize2d(x, relax.ShapeExpr((8, 3)), layout="NCHW", **options)

    kernel = single([(1, 2, 4, 5)], body)
    check_windows(kernel)
    assert splits_along(kernel) == [1, 2, 3]


#: token ids; a kernel's operands are filled with others of 0 to 8
IDS = relax.const([[3, 0, 9, 9, 1]], "int64")

BODIES = {
    "broadcast": ([(2, 3, 4), (3, 1), (4,)], lambda x, y, z: _op.add(_op.multiply(x, y), z), [0, 1, 2]),
    "residual": ([(1, 3, 5, 4)] * 2, lambda x, y: _op.nn.relu(_op.add(x, y)), [1, 2, 3]),
    "concat": ([(1, 2, 3, 4), (1, 3, 3, 4), (1, 1, 3, 4)], lambda *x: _op.concat(x, 1), [1, 2, 3]),
    "concat of rows": ([(2, 3), (4, 3)], lambda *x: _op.nn.relu(_op.concat(x, 0)), [0, 1]),
    "transpose": ([(2, 3, 4)], lambda x: _op.permute_dims(x, [2, 0, 1]), [0, 1, 2]),
    "softmax": ([(2, 3, 4)], lambda x: _op.nn.softmax(x, axis=1), [0, 2]),
    "log softmax": ([(3, 4)], lambda x: _op.nn.log_softmax(x), [0]),
    "layer norm": ([(3, 4)], lambda x: _op.nn.layer_norm(x, weight(4), weight(4, seed=1), [-1]), [0]),
    "matmul": ([(3, 4), (4, 5)], _op.matmul, [0, 1]),
    "batched matmul": ([(2, 3, 4), (2, 4, 5)], _op.matmul, [0, 1, 2]),
    "mean": ([(2, 3, 4, 5)], lambda x: _op.mean(x, [2, 3], keepdims=True), [0, 1]),
    "max": ([(2, 3, 4)], lambda x: _op.max(x, [1]), [0, 1]),
    "slice": ([(2, 9)], lambda x: _op.strided_slice(x, axes=[1], begin=[1], end=[8], strides=[3]), [0, 1]),
    "flip": ([(4, 3)], lambda x: _op.flip(x, 0), [0, 1]),
    "pad": ([(1, 2, 4, 3)], lambda x: _op.nn.pad(x, [0, 0, 0, 0, 2, 1, 0, 2]), [1, 2, 3]),
    "mirrored pad": ([(1, 2, 4, 3)], lambda x: _op.nn.pad(x, [0, 0, 0, 0, 2, 1, 0, 2], "reflect"), [1, 2, 3]),
    "tile": ([(2, 3)], lambda x: _op.tile(x, (2, 2)), []),
    "repeat": ([(2, 3)], lambda x: _op.repeat(x, 2, 1), []),
    "conv1d": ([(1, 2, 9)], lambda x: _op.nn.conv1d(x, weight(3, 2, 3), strides=2, padding=1), [2]),
    "transposed": ([(1, 2, 4, 3)], lambda x: _op.nn.conv2d_transpose(x, weight(2, 3, 3, 3), strides=2), [2, 3]),
    "gather": ([(10, 3)], lambda x: _op.take(x, IDS, axis=0, mode="clip"), [1, 2]),
    "gather along rows": ([(4, 10)], lambda x: _op.take(x, IDS, axis=1, mode="clip"), [0, 2]),
    "pixel shuffle": (
        [(1, 8, 4, 3)],
        lambda x: _op.reshape(_op.permute_dims(_op.reshape(x, (1, 2, 2, 2, 4, 3)), [0, 3, 4, 1, 5, 2]), (1, 2, 8, 6)),
        [1, 2, 3],
    ),
    "pixel shuffle, channels last": (
        [(1, 8, 4, 3)],
        lambda x: _op.permute_dims(
            _op.reshape(_op.permute_dims(_op.reshape(x, (1, 2, 2, 2, 4, 3)), [0, 3, 4, 1, 5, 2]), (1, 2, 8, 6)),
            [0, 2, 3, 1],
        ),
        [1, 2, 3],
    ),
    "cumulative": ([(3, 4)], lambda x: _op.cumsum(x, 1), []),
}


@pytest.mark.parametrize("name", BODIES)
def test_other_kernels(name):
    shapes, body, along = BODIES[name]
    kernel = single(shapes, body)
    check_windows(kernel)
    assert set(splits_along(kernel)) >= set(along)


def test_rows_of_a_pixel_shuffle_are_rows_in_any_layout():
    """Follow the rows of the operand, not its channels: with channels last, a row is at the place of a channel."""
    for name, result, operand in (("pixel shuffle", 2, 2), ("pixel shuffle, channels last", 1, 2)):
        shapes, body, _ = BODIES[name]
        rows = rows_of(single(shapes, body).kernel, result)
        assert rows is not None and [follows.axis for _, follows in rows.operands] == [operand], name


def test_a_convolution_and_a_pooling_in_one_kernel():
    def body(x):
        y = _op.nn.relu(_op.nn.conv2d(x, weight(3, 2, 3, 3), padding=1))
        return _op.nn.max_pool2d(y, (2, 2), (2, 2))

    kernel = single([(1, 2, 7, 6)], body, ("legalize", "fold-constant", "fuse-operators{over=pooling}"))
    check_windows(kernel)
    assert {2, 3} <= set(splits_along(kernel))


def test_rows_that_do_not_exist_are_not_computed():
    """Fuse a mean with its concatenation: the mean has no rows in the other part."""
    passes = ("legalize", "fold-constant", "fuse-operators{over=reduction}")
    kernel = single([(1, 1, 4, 3)], lambda x: _op.concat((_op.mean(x, [1], keepdims=True), _op.nn.relu(x)), 2), passes)
    check_windows(kernel)
    assert rows_of(kernel.kernel, 2) is None and rows_of(kernel.kernel, 3) is not None


def test_what_has_no_rows_is_refused():
    kernel = single([(3, 4)], lambda x: _op.nn.softmax(x))
    assert rows_of(kernel.kernel, 1) is None
    with pytest.raises(NoMatch):
        row_window(kernel.kernel, 1, 1)


def test_rows_beyond_number_are_not_worked_out():
    """Refuse a hundred million rows: each is analysed by itself, which would take minutes and gigabytes."""
    few, many = (
        single([(count, 2)], lambda x: relax.op.nn.relu(x)).kernel for count in (MOST_ROWS // 16, 64 * MOST_ROWS)
    )
    assert rows_of(few, 0) is not None
    assert rows_of(many, 0) is None and rows_of(many, 1) is not None
