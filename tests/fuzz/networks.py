"""Networks of 5 to 40 nodes, some with branches: float, quantised, mixed, or float16 as converters write it; and sequences with splits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import onnx
from onnx import helper, numpy_helper

from passfit.errors import ModelError
from passfit.quantise.prepare import prepare
from passfit.quantise.quantiser import Quantiser

from .cases import Case
from .draw import Illegal
from .halve import halve
from .judge import NETWORKS
from .quantise import quantise
from .reference import expected

#: those that are quantised
_INTEGER = ("qdq", "mixed", "calibrated")
#: graph passes a sequence may begin with
_GRAPH = (
    "simplify", "fold-batch-norm", "fold-batchnorm-to-conv2d", "fold-scale-axis", "eliminate-common-subexpr", "partial-convolutions",
    "combine-parallel-conv2d", "fold-explicit-padding", "push-slices-up", "fuse-transpose-matmul",
    "decompose-ops-for-inference", "fuse-transpose-matmul", "split-heads",
)  # fmt: skip
_DRAWS = 8


def network_case(seed: int, only: str = "") -> Case:
    """Draw a network with its inputs, its reference and a sequence. Raises Illegal if no draw is legal."""
    kinds = only.split(",") if only else NETWORKS
    kind, reason = kinds[seed % len(kinds)], ""
    for attempt in range(_DRAWS):
        random = np.random.default_rng([2, seed, attempt])
        net = Network(random, with_bytes=kind in _INTEGER)
        net.grow(int(random.integers(4, 26 if kind == "float" else 14)))
        model = net.model(13 if kind in _INTEGER else int(random.choice([11, 13, 13, 17, 17, 19])))
        inputs = {"x": random.standard_normal(net.start).astype(np.float32)}
        try:
            if kind == "calibrated":
                model = _calibrated(model, inputs, random)
            elif kind in _INTEGER:
                model = quantise(model, inputs, random, left=0.0 if kind == "qdq" else 0.3)
            elif kind != "float":
                model, inputs = halve(model, inputs, random, left=0.0 if kind == "half" else 0.3)
            outputs = expected(model, inputs)
        except Illegal as error:
            reason = str(error)
            continue
        if all(np.isfinite(each).all() and (np.abs(each) < 3e4).all() for each in outputs):
            return Case(kind, model, inputs, outputs, _sequence(random))
        reason = "values grow"
    raise Illegal(f"{kind}: {reason}")


def _calibrated(model: onnx.ModelProto, inputs: dict[str, np.ndarray], random: np.random.Generator) -> onnx.ModelProto:
    """Quantise as `passfit quantize` does, with some layers left in float. Raises Illegal."""
    try:
        quantiser = Quantiser(prepare(model), [inputs])
        return quantiser.quantise([name for name in quantiser.layers if random.random() < 0.15])
    except ModelError as error:
        raise Illegal(error.what) from error


def _sequence(random: np.random.Generator) -> tuple[str, ...]:
    """Draw passes; a split or an order stands as a fraction `@first-last`, made steps when the program is known."""
    before = [name for name in _GRAPH if random.random() < 0.15]
    over = ("", "{over=reduction}", "{over=pooling}")[int(random.integers(0, 3))]
    passes = [*before, "legalize", "fold-constant", f"fuse-operators{over}"]
    for _ in range(int(random.integers(0, 3))):
        passes.append(f"order{{by={random.choice(['given', 'beam'])}}}")
        first = random.random()
        axis = ",axis=3" if random.random() < 0.15 else ""
        rows = f",rows={random.integers(1, 4)}" if random.random() < 0.5 else ""
        name = "split-rows" if random.random() < 0.8 else "split-channels"
        passes.append(
            f"{name}{{steps=@{first:.3f}+{random.integers(1, 7)}{(axis + rows) if name == 'split-rows' else ''}}}"
        )
    return (*passes, *(("share", "order{by=beam}") if random.random() < 0.7 else ("order{by=given}",)))


class Network:
    """Graph over planes that grows by layers; every value has the shape it was made with."""

    #: sides of the input, its channels and those of convolutions; largest side of what grows, elements of an attention
    SIDES, CHANNELS, FILTERS, LARGEST, ATTENDED = (8, 9, 12, 16), (1, 3, 4, 8), (1, 2, 4, 5, 8, 16), 16, 100

    def __init__(self, random: np.random.Generator, with_bytes: bool):
        self.random, self.quantised = random, with_bytes
        side = int(random.choice(self.SIDES))
        self.start = (1, int(random.choice(self.CHANNELS)), side, side + int(random.integers(0, 3)))
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, np.ndarray] = {}
        self.values: list[tuple[str, tuple[int, ...]]] = [("x", self.start)]
        self._named = 0  # values so far, those of branches too

    def grow(self, count: int) -> None:
        """Add `count` layers, then perhaps a head of vectors."""
        self._layers(count)
        if self.random.random() < 0.5:
            self._head()

    def _layers(self, count: int) -> None:
        layers = (
            [self._convolution] * 5
            + [self._activation] * 3
            + [self._pooling, self._sum, self._sum, self._concat, self._gate, self._resize, self._branch]
        )
        if not self.quantised:
            layers += [self._norm, self._moves, self._transposed, self._slice, self._attention]
        for _ in range(count):
            layers[int(self.random.integers(0, len(layers)))]()

    def model(self, opset: int) -> onnx.ModelProto:
        """Return the model; its last value is the output, and perhaps one in the middle."""
        made = {name for node in self.nodes for name in node.output}
        ends = [self.values[-1][0]]
        planes = [name for name, shape in self.values if len(shape) == 4]
        middle = planes[len(planes) // 2]
        if self.random.random() < 0.2 and middle in made and middle not in ends:
            ends.append(middle)
        graph = helper.make_graph(
            self.nodes, "fuzz", [helper.make_tensor_value_info("x", 1, self.start)],
            [helper.make_tensor_value_info(name, 1, dict(self.values)[name]) for name in ends],
            [numpy_helper.from_array(value, name) for name, value in self.weights.items()],
        )  # fmt: skip
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)

    def _add(self, op: str, inputs: list[str], shape: tuple[int, ...], **attributes: object) -> None:
        name, self._named = f"v{self._named}", self._named + 1
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"n{name}", **attributes))
        self.values.append((name, shape))

    def _constant(self, value: object, dtype: type = np.float32) -> str:
        self.weights[name := f"w{len(self.weights)}"] = np.asarray(value, dtype)
        return name

    def _weight(self, *shape: int, scale: float = 0.0) -> str:
        name = f"w{len(self.weights)}"
        fan = max(1, int(np.prod(shape[1:])))
        self.weights[name] = (self.random.standard_normal(shape) * (scale or fan**-0.5)).astype(np.float32)
        return name

    def _pick(self) -> tuple[str, tuple[int, ...]]:
        """Choose a value of planes: mostly the latest."""
        planes = [each for each in self.values if len(each[1]) == 4]
        return planes[-1] if self.random.random() < 0.8 else planes[int(self.random.integers(0, len(planes)))]

    def _convolution(self) -> None:
        x, (n, c, h, w) = self._pick()
        form = self.random.choice(["1x1", "3x3", "3x3", "depthwise", "grouped", "5x1", "dilated"])
        filters = int(self.random.choice(self.FILTERS))
        group = c if form == "depthwise" else 2 if form == "grouped" and c % 2 == 0 else 1
        filters = c if form == "depthwise" else filters * group
        kernel = {"1x1": (1, 1), "5x1": (5, 1)}.get(str(form), (3, 3))
        dilation = 2 if form == "dilated" else 1
        stride = int(self.random.choice([1, 1, 1, 2])) if min(h, w) > 4 else 1
        pads = [(k - 1) * dilation // 2 for k in kernel] if self.random.random() < 0.8 else [0, 0]
        sizes = [(n_ + 2 * p - (k - 1) * dilation - 1) // stride + 1 for n_, p, k in zip((h, w), pads, kernel)]
        if min(sizes) < 1:
            return
        inputs = [
            x,
            self._weight(filters, c // group, *kernel),
            *([self._weight(filters, scale=0.3)] if self.random.random() < 0.8 else []),
        ]
        self._add(
            "Conv",
            inputs,
            (n, filters, *sizes),
            kernel_shape=list(kernel),
            strides=[stride] * 2,
            pads=[*pads, *pads],
            dilations=[dilation] * 2,
            group=group,
        )

    def _activation(self) -> None:
        x, shape = self.values[-1]
        op = str(
            self.random.choice(["Relu", "Relu", "Clip", "LeakyRelu", "HardSwish", "Sigmoid", "Tanh", "PRelu", "Elu"])
        )
        if op == "HardSwish":
            op = "HardSigmoid"
        extra = []
        if op == "Clip":
            for bound in (0.0, 6.0):
                self.weights[f"w{len(self.weights)}"] = np.float32(bound)
                extra.append(f"w{len(self.weights) - 1}")
        if op == "PRelu":
            extra = (
                [self._weight(shape[1], *[1] * (len(shape) - 2), scale=0.3)] if len(shape) == 4 else [self._weight(1)]
            )
        self._add(op, [x, *extra], shape)

    def _pooling(self) -> None:
        x, (n, c, h, w) = self._pick()
        op, kernel, stride = (
            str(self.random.choice(["MaxPool", "AveragePool"])),
            int(self.random.choice([2, 3])),
            int(self.random.choice([1, 2])),
        )
        pad = int(self.random.integers(0, kernel // 2 + 1))
        sizes = [(size + 2 * pad - kernel) // stride + 1 for size in (h, w)]
        if min(sizes) >= 1:
            self._add(op, [x], (n, c, *sizes), kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4)

    def _sum(self) -> None:
        x, shape = self._pick()
        others = [name for name, each in self.values if each == shape and name != x]
        if others:
            other = others[int(self.random.integers(0, len(others)))]
            self._add(str(self.random.choice(["Add", "Add", "Mul"])), [x, other], shape)

    def _concat(self) -> None:
        x, (n, c, h, w) = self._pick()
        others = [(name, each[1]) for name, each in self.values if len(each) == 4 and each[2:] == (h, w) and name != x]
        if others:
            name, more = others[int(self.random.integers(0, len(others)))]
            self._add("Concat", [x, name], (n, c + more, h, w), axis=1)

    def _gate(self) -> None:
        x, (n, c, h, w) = self._pick()
        self._add("GlobalAveragePool", [x], (n, c, 1, 1))
        self._add("Conv", [self.values[-1][0], self._weight(c, c, 1, 1)], (n, c, 1, 1))
        self._add("Sigmoid", [self.values[-1][0]], (n, c, 1, 1))
        self._add("Mul", [x, self.values[-1][0]], (n, c, h, w))

    def _resize(self) -> None:
        x, (n, c, h, w) = self._pick()
        if max(h, w) <= self.LARGEST:
            self.weights[name := f"w{len(self.weights)}"] = np.asarray([1, 1, 2, 2], np.float32)
            mode = "nearest" if self.quantised else str(self.random.choice(["nearest", "linear"]))
            self._add(
                "Resize",
                [x, "", name],
                (n, c, 2 * h, 2 * w),
                mode=mode,
                coordinate_transformation_mode="asymmetric",
                nearest_mode="floor",
            )
            self.nodes[-1].input[1] = ""

    def _norm(self) -> None:
        x, shape = self._pick()
        c = shape[1]
        if self.random.random() < 0.7:
            self.weights[var := f"w{len(self.weights)}"] = self.random.uniform(0.5, 2, c).astype(np.float32)
            self._add(
                "BatchNormalization",
                [x, self._weight(c, scale=1), self._weight(c, scale=1), self._weight(c, scale=0.3), var],
                shape,
            )
        else:
            self._add("InstanceNormalization", [x, self._weight(c, scale=1), self._weight(c, scale=1)], shape)

    def _moves(self) -> None:
        x, (n, c, h, w) = self._pick()
        if c % 4 == 0 and max(h, w) <= 12 and self.random.random() < 0.5:
            self._add("DepthToSpace", [x], (n, c // 4, 2 * h, 2 * w), blocksize=2)
        elif h % 2 == 0 and w % 2 == 0:
            self._add("SpaceToDepth", [x], (n, 4 * c, h // 2, w // 2), blocksize=2)
        else:
            self._add("Transpose", [x], (n, c, w, h), perm=[0, 1, 3, 2])

    def _transposed(self) -> None:
        x, (n, c, h, w) = self._pick()
        filters, stride = int(self.random.choice([1, 3, 8])), int(self.random.choice([1, 2]))
        if max(h, w) <= self.LARGEST:
            self._add(
                "ConvTranspose",
                [x, self._weight(c, filters, 3, 3)],
                (n, filters, (h - 1) * stride + 1, (w - 1) * stride + 1),
                strides=[stride] * 2,
                pads=[1] * 4,
            )

    def _slice(self) -> None:
        x, (n, c, h, w) = self._pick()
        axis = int(self.random.choice([1, 2, 3]))
        shape = [n, c, h, w]
        if shape[axis] > 2:
            for value in ([1], [shape[axis] - 1], [axis]):
                self.weights[f"w{len(self.weights)}"] = np.asarray(value, np.int64)
            names = list(self.weights)[-3:]
            shape[axis] -= 2
            self._add("Slice", [x, *names], tuple(shape))

    def _attention(self) -> None:
        x, (n, c, h, w) = self._pick()
        if h * w > self.ATTENDED:
            return
        self.weights[name := f"w{len(self.weights)}"] = np.asarray([n, c, h * w], np.int64)
        self.weights[back := f"w{len(self.weights)}"] = np.asarray([n, c, h, w], np.int64)
        self._add("Reshape", [x, name], (n, c, h * w))
        keys = self.values[-1][0]
        self._add("Transpose", [keys], (n, h * w, c), perm=[0, 2, 1])
        self._add("MatMul", [self.values[-1][0], keys], (n, h * w, h * w))
        self._add("Softmax", [self.values[-1][0]], (n, h * w, h * w), axis=2)
        self._add("MatMul", [keys, self.values[-1][0]], (n, c, h * w))
        self._add("Reshape", [self.values[-1][0], back], (n, c, h, w))

    def _branch(self) -> None:
        """Choose between layers by a condition on the data, or guard an index that one branch alone may read."""
        x, (n, c, h, w) = self._pick()
        self._add("ReduceMax", [x], (), keepdims=0)
        if self.random.random() < 0.3:
            self._add("Mul", [self.values[-1][0], self._constant(c * self.random.random())], ())
            self._add("Abs", [self.values[-1][0]], ())
            self._add("Cast", [self.values[-1][0]], (), to=onnx.TensorProto.INT64)
            self._add("Reshape", [self.values[-1][0], self._constant([1], np.int64)], (1,))
            index, shape = self.values[-1][0], (n, 1, h, w)
            self._add("Less", [index, self._constant([c], np.int64)], (1,))
            reads = [
                partial(self._add, "Gather", [x, each], shape, axis=1)
                for each in (index, self._constant([0], np.int64))
            ]
        else:
            self._add("Greater", [self.values[-1][0], self._constant(self.random.uniform(0, 2))], ())
            shape, reads = (n, c, h, w), [partial(self._layers, int(self.random.integers(0, 4))) for _ in range(2)]
        condition = self.values[-1][0]
        branches = [self._inner((x, (n, c, h, w)), shape, grow) for grow in reads]
        self._add("If", [condition], shape, then_branch=branches[0], else_branch=branches[1])

    def _inner(
        self, x: tuple[str, tuple[int, ...]], shape: tuple[int, ...], grow: Callable[[], None]
    ) -> onnx.GraphProto:
        """Return a branch that reads `x` of the graph around it; its result is the last value of `shape`."""
        nodes, values = self.nodes, self.values
        self.nodes, self.values = [], [*values, x]
        grow()
        last = next(name for name, each in reversed(self.values) if each == shape)
        self._add("Identity", [last], shape)
        branch = helper.make_graph(
            self.nodes, "branch", [], [helper.make_tensor_value_info(self.values[-1][0], 1, shape)]
        )
        self.nodes, self.values = nodes, values
        return branch

    def _head(self) -> None:
        x, (n, c, _, _) = self._pick()
        self._add("GlobalAveragePool", [x], (n, c, 1, 1))
        self._add("Flatten", [self.values[-1][0]], (n, c))
        self._add("Gemm", [self.values[-1][0], self._weight(5, c), self._weight(5, scale=0.3)], (n, 5), transB=1)
        if not self.quantised:
            self._add("Softmax", [self.values[-1][0]], (n, 5), axis=1)
