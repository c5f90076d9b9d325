"""Random ONNX graphs of the operators that rules match, in the forms they match, and of others between these."""

from __future__ import annotations

from random import Random

import numpy as np
import onnx

from ...models import NodeBuilder

Shape = tuple[int, ...]
#: shapes of the input
_SHAPES = ((2, 4), (1, 4, 6), (2, 3, 4), (1, 4, 6, 6), (2, 2, 3, 4))
_SMOOTH = ("Relu", "Neg", "Abs", "Sigmoid", "Tanh")


class RandomGraph:
    """Grow a graph from one input by motifs; each takes a value and makes one or two.

    Operators with steps (comparisons, floor, casts to whole numbers) read the input alone: behind others, rounding would
    decide on which side of a step a value falls.
    """

    def __init__(self, random: Random):
        self.random, self.maker = random, NodeBuilder()
        self.shape: Shape = random.choice(_SHAPES)
        self.values: list[tuple[str, Shape]] = [("x", self.shape)]

    def model(self) -> onnx.ModelProto:
        motifs = [getattr(self, name) for name in sorted(dir(self)) if name.startswith("make_")]
        for _ in range(self.random.randint(3, 12)):
            self.random.choice(motifs)(*self.random.choice(self.values[-4:]))
        outputs = [self.maker.node("Tanh", name) for name, _ in self.values[1:][-2:]]
        return self.maker.model(self.shape, *(outputs or [self.maker.node("Tanh", "x")]))

    def _add(self, name: str, shape: Shape) -> str:
        self.values.append((name, shape))
        return name

    def _weight(self, *shape: int) -> str:
        """A constant of few different values, sometimes of one, so that equal ones come about."""
        if self.random.random() < 0.2:
            return self.maker.constant(np.full(shape, self.random.choice((0.0, 1.0, 2.0)), "float32"))
        values = np.array([self.random.choice((-1.0, 0.0, 0.5, 1.0, 2.0)) for _ in range(int(np.prod(shape)))])
        return self.maker.constant(values.reshape(shape).astype("float32"))

    def _number(self) -> str:
        return self.maker.constant(np.float32(self.random.choice((-1.0, 0.0, 0.5, 1.0, 2.0, 3.0))))

    def _ints(self, *values: int) -> str:
        return self.maker.constant(np.array(values, "int64"))

    def _smooth(self, x: str) -> str:
        for _ in range(self.random.randint(0, 2)):
            x = self.maker.node(self.random.choice(_SMOOTH), x)
        return x

    def _row(self, shape: Shape) -> str:
        """A constant that broadcasts to a shape."""
        rank = self.random.randint(0, len(shape))
        return self._weight(*(extent if self.random.random() < 0.6 else 1 for extent in shape[len(shape) - rank :]))

    def make_unary(self, x: str, shape: Shape) -> None:
        self._add(self.maker.node(self.random.choice((*_SMOOTH, "Identity")), x), shape)

    def make_twice(self, x: str, shape: Shape) -> None:
        op = self.random.choice(("Neg", "Relu", "Abs"))
        self._add(self.maker.node(op, self.maker.node(op, x)), shape)

    def make_binary(self, x: str, shape: Shape) -> None:
        same = [name for name, other in self.values if other == shape]
        op = self.random.choice(("Add", "Sub", "Mul", "Max", "Min"))
        self._add(self.maker.node(op, x, self.random.choice(same)), shape)

    def make_sum(self, x: str, shape: Shape) -> None:
        operators = self.random.choice((("Add", "Sub"), ("Mul",), ("Add", "Mul")))
        for _ in range(self.random.randint(1, 4)):
            pair = [x, self._row(shape)]
            self.random.shuffle(pair)
            x = self.maker.node(self.random.choice(operators), *pair)
        self._add(x, shape)

    def make_small_sums(self, x: str, shape: Shape) -> None:
        small = self.maker.node("ReduceMean", x, axes=[len(shape) - 1], keepdims=1)
        left = self.maker.node("Add", x, small)
        self._add(
            self.maker.node("Add", left, self.maker.node("Add", self._smooth(x), self._row(small_shape(shape)))), shape
        )

    def make_factors(self, x: str, shape: Shape) -> None:
        terms = [self.maker.node("Mul", x, self._row(shape)) for _ in range(2)] + [x] * self.random.randint(0, 2)
        total = terms[0]
        for term in terms[1:]:
            total = self.maker.node(self.random.choice(("Add", "Sub")), total, term)
        self._add(total, shape)

    def make_powers(self, x: str, shape: Shape) -> None:
        positive = self.maker.node("Add", self.maker.node("Abs", x), self.maker.constant(np.float32(1)))
        self._add(self.maker.node("Pow", positive, self._number()), shape)

    def make_clips(self, x: str, shape: Shape) -> None:
        for _ in range(2):
            low, high = sorted(self.random.choice((-2.0, -0.5, 0.0, 0.25, 1.0, 6.0)) for _ in range(2))
            if self.random.random() < 0.5:
                x = self.maker.node("Clip", x, *(self.maker.constant(np.float32(each)) for each in (low, high)))
            else:
                x = self.maker.node(self.random.choice(("Max", "Min")), x, self.maker.constant(np.float32(low)))
        self._add(x, shape)

    def make_choice(self, x: str, shape: Shape) -> None:
        condition = self.maker.node(self.random.choice(("Greater", "Less")), "x", self._number())
        if self.random.random() < 0.6:
            condition = self.maker.node("Not", condition)
        if shape != self.shape:
            condition = self.maker.node("ReduceMax", self.maker.node("Cast", condition, to=1), keepdims=1)
            condition = self.maker.node("Cast", self.maker.node("Reshape", condition, self._ints(1)), to=9)
        self._add(self.maker.node("Where", condition, x, self.random.choice((x, self._smooth(x)))), shape)

    def make_casts(self, x: str, shape: Shape) -> None:
        wide = self.maker.node("Cast", x, to=11)  # float64
        self._add(self.maker.node("Cast", wide, to=1), shape)
        whole = self.maker.node("Cast", self.maker.node("Floor", "x"), to=6)
        self._add(self.maker.node("Cast", self.maker.node("Cast", whole, to=7), to=1), self.shape)

    def make_reshapes(self, x: str, shape: Shape) -> None:
        flat = self._smooth(self.maker.node("Reshape", x, self._ints(-1)))
        if self.random.random() < 0.5:
            flat = self.maker.node("Mul", flat, self._number())
        self._add(self.maker.node("Reshape", flat, self._ints(*shape)), shape)
        wide = self.maker.node("Unsqueeze", x, self._ints(0))
        self._add(self.maker.node("Squeeze", self._smooth(wide), self._ints(0)), shape)

    def make_transposes(self, x: str, shape: Shape) -> None:
        order = list(range(len(shape)))
        self.random.shuffle(order)
        y = self.maker.node("Transpose", x, perm=order)
        moved = tuple(shape[axis] for axis in order)
        self._add(y, moved)
        y = self._smooth(y)
        if self.random.random() < 0.5:
            y = self.maker.node("Add", y, self._row(moved))
        if self.random.random() < 0.3:
            y = self.maker.node("Softmax", y, axis=self.random.randrange(len(shape)))
        if self.random.random() < 0.3 and len(shape) > 2:
            axis = self.random.randrange(len(shape))
            self._add(self.maker.node("ReduceMax", y, axes=[axis], keepdims=0), (*moved[:axis], *moved[axis + 1 :]))
        self._add(self.maker.node("Transpose", y, perm=list(np.argsort(order))), shape)

    def make_broadcast(self, x: str, shape: Shape) -> None:
        small = self.maker.node("ReduceMean", x, axes=[0], keepdims=1)
        wide = self._smooth(self.maker.node("Expand", small, self._ints(*shape)))
        self._add(self.maker.node("Mul", wide, self.random.choice((x, wide))), shape)

    def make_split(self, x: str, shape: Shape) -> None:
        axis = self.random.choice([axis for axis, extent in enumerate(shape) if extent > 1] or [0])
        if shape[axis] < 2:
            return
        cut = self.random.randint(1, shape[axis] - 1)
        self.maker.node("Split", x, self._ints(cut, shape[axis] - cut), results=2, axis=axis)
        parts = self.maker.results()
        if self.random.random() < 0.4:
            parts = [self._smooth(each) for each in parts]
        if self.random.random() < 0.2:
            parts.pop()
            self._add(parts[0], (*shape[:axis], cut, *shape[axis + 1 :]))
        else:
            self._add(self.maker.node("Concat", *parts, axis=axis), shape)

    def make_concat(self, x: str, shape: Shape) -> None:
        axis = self.random.randrange(len(shape))
        both = self.maker.node("Concat", x, self._smooth(x), axis=axis)
        extent = shape[axis]
        begin = self.random.choice((0, 0, 1, extent))
        self._slice(self._smooth(both), axis, begin, begin + extent)
        self._add(self.maker.results()[0], shape)

    def _slice(self, x: str, axis: int, begin: int, end: int, step: int = 1) -> str:
        return self.maker.node("Slice", x, *map(self._ints, (begin, end, axis, step)))

    def make_slice(self, x: str, shape: Shape) -> None:
        axis = self.random.randrange(len(shape))
        extent = shape[axis]
        if extent < 2:
            return
        y = self.maker.node("Add", self._smooth(x), self._row(shape))
        if self.random.random() < 0.4:
            y, shape = self.maker.node("MatMul", y, self._weight(shape[-1], shape[-1])), shape
        begin, step = self.random.randint(0, extent - 1), self.random.choice((1, 1, 2))
        end = self.random.randint(begin + 1, extent)
        taken = -((begin - end) // step)
        self._add(self._slice(y, axis, begin, end, step), (*shape[:axis], taken, *shape[axis + 1 :]))

    def make_take(self, x: str, shape: Shape) -> None:
        if len(shape) < 3:
            return
        y = self.maker.node("Add", x, self.maker.node("MatMul", self._smooth(x), self._weight(shape[-1], shape[-1])))
        axis = self.random.randrange(len(shape) - 1)
        self._add(
            self.maker.node("Gather", y, self.maker.constant(np.int64(0)), axis=axis), shape[:axis] + shape[axis + 1 :]
        )

    def make_products(self, x: str, shape: Shape) -> None:
        weights = [self._weight(shape[-1], 3) for _ in range(2)]
        products = [self.maker.node("MatMul", x, each) for each in weights]
        self._add(self.maker.node("Add", *products), (*shape[:-1], 3))

    def make_convolution(self, x: str, shape: Shape) -> None:
        if len(shape) != 4 or min(shape[2:]) < 3:
            return
        channels, side = shape[1], self.random.choice((1, 3))
        if self.random.random() < 0.5:
            x = self.maker.node("Mul", x, self._weight(1, channels, 1, 1))
        results, around = [], {"pads": [side // 2] * 4}
        for _ in range(self.random.randint(1, 2)):
            y = self.maker.node("Conv", x, self._weight(channels, channels, side, side), **around)
            if self.random.random() < 0.5:
                numbers = [self._weight(channels) for _ in range(3)]
                y = self.maker.node(
                    "BatchNormalization", y, *numbers, self.maker.constant(np.full(channels, 2, "float32"))
                )
            results.append(self.maker.node("Mul", y, self.maker.constant(np.float32(0.25))))
        self._add(results[0], shape)
        if len(results) > 1:
            self._add(self.maker.node("Concat", *results, axis=1), (shape[0], 2 * channels, *shape[2:]))

    def make_batched_products(self, x: str, shape: Shape) -> None:
        turned = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
        first = self.maker.node("Transpose", x, perm=turned)
        second = self.maker.node("Transpose", self.maker.node("Tanh", x), perm=turned)
        products = [self.maker.node("MatMul", x, each) for each in (first, second)]
        mean = self.maker.node("Mul", self.maker.node("Add", *products), self.maker.constant(np.float32(1 / shape[-1])))
        self._add(mean, (*shape[:-1], shape[-2]))

    def make_convolution_of_parts(self, x: str, shape: Shape) -> None:
        if len(shape) != 4:
            return
        groups = self.random.choice((1, 2 * shape[1]))
        y = self._smooth(self.maker.node("Concat", x, self.maker.node("Sigmoid", x), axis=1))
        y = self.maker.node("Conv", y, self._weight(2 * shape[1], 2 * shape[1] // groups, 1, 1), group=groups)
        self._add(
            self.maker.node("Mul", y, self.maker.constant(np.float32(0.25))), (shape[0], 2 * shape[1], *shape[2:])
        )

    def make_convolution_of_points(self, x: str, shape: Shape) -> None:
        if len(shape) == 4:
            point = self.maker.node("GlobalAveragePool", x)
            around = [1, 1, 1, 1]
            if self.random.random() < 0.5:
                point, around = self.maker.node("Pad", point, self._ints(0, 0, 1, 1, 0, 0, 1, 1)), [0, 0, 0, 0]
            y = self.maker.node("Conv", point, self._weight(3, shape[1], 3, 3), pads=around)
            self._add(y, (shape[0], 3, 1, 1))

    def make_pool(self, x: str, shape: Shape) -> None:
        if len(shape) == 4:
            self._add(self.maker.node("GlobalAveragePool", x), (*shape[:2], 1, 1))


def small_shape(shape: Shape) -> Shape:
    """Return the shape of a mean over the last axis."""
    return (*shape[:-1], 1)
