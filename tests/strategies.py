"""Random programs for hypothesis: small, well formed, and with every oddity a real model may have."""

from __future__ import annotations

import hashlib

from hypothesis import strategies as st

from passfit.program import DTYPE_BYTES, Buffer, Port, Program, Step, Tensor, View, Weight

# Few draws with much in each: hypothesis takes most of the time of these tests.
#: names as models have them, and as nobody should have them
NAMES = st.sampled_from(
    ["conv1", "a/b:0", "", "größe", "\x00\x1f", "\u2028", '<&>"', "[bold]", "x" * 300, "😀", "\\n", "'"]
)
#: shape and dtype
KINDS = st.sampled_from(
    [((), "bool"), ((1,), "int64"), ((5,), "int8"), ((3, 7), "float16"), ((2, 2, 9), "float32"), ((40,), "float64")]
    + [((n,), "float32") for n in (1, 16, 17, 32, 48, 64, 96, 128)]
)
#: what a step reads, as places among what can be read; how many results it has; whether its ONNX node is known
_STEPS = st.tuples(
    st.lists(st.sampled_from([-1, -1, -2, -3, -4, -6, 0, 1]), max_size=3),
    st.sampled_from([1, 1, 1, 2, 3]),
    st.booleans(),
)


class Builder:
    """Collects the parts of a program; every method returns the number of a new tensor."""

    def __init__(self, draw: st.DrawFn):
        self.draw = draw
        self.steps: list[Step] = []
        self.tensors: list[Tensor] = []
        self.buffers: list[Buffer] = []
        self.weights: list[Weight] = []
        self.views: list[View] = []

    def activation(self) -> int:
        tensor = Tensor(*self.draw(KINDS), buffer=len(self.buffers))
        self.buffers.append(Buffer(self.draw(NAMES), tensor.nbytes))
        return self._add(tensor)

    def weight(self) -> int:
        tensor = Tensor(*self.draw(KINDS), weight=len(self.weights))
        name = f"w{len(self.weights)}"
        self.weights.append(Weight(name, tensor.nbytes, hashlib.sha256(name.encode()).hexdigest()))
        return self._add(tensor)

    def view(self, of: int) -> int:
        source = self.tensors[of]
        extents = (*source.shape, 1) if self.draw(st.booleans()) else (source.nbytes // DTYPE_BYTES[source.dtype],)
        number = self._add(Tensor(extents, source.dtype, source.buffer, source.weight))
        if source.buffer is not None:
            self.views.append(View(number, of))
        return number

    def step(self, readable: list[int]) -> list[int]:
        # Mostly what was made lately, as in real models.
        reads, results, node = self.draw(_STEPS)
        reads = [readable[place] for place in reads if -place <= len(readable) and place < len(readable)]
        writes = [self.activation() for _ in range(results)]
        nodes = (f"node{len(self.steps)}",) if node else ()
        self.steps.append(Step(f"kernel{len(self.steps)}", tuple(reads), tuple(writes), nodes))
        return writes

    def _add(self, tensor: Tensor) -> int:
        self.tensors.append(tensor)
        return len(self.tensors) - 1


@st.composite
def programs(draw: st.DrawFn, max_steps: int = 12, max_inputs: int = 3, kind: type[Builder] = Builder) -> Program:
    """DAGs of steps over buffers, views and weights.

    With several inputs and outputs, inputs no step reads, results nobody reads, steps with several results or no
    operands, outputs that are inputs, weights, views or the same buffer twice, and programs without steps.
    """
    builder = kind(draw)
    inputs = [builder.activation() for _ in range(draw(st.integers(0, max_inputs)))]
    readable = inputs + [builder.weight() for _ in range(draw(st.integers(0, 2)))]
    for _ in range(draw(st.integers(0, max_steps))):
        readable += builder.step(readable)
        if draw(st.integers(0, 3)) == 0:
            readable.append(builder.view(draw(st.sampled_from(readable))))
    outputs = draw(st.lists(st.sampled_from(readable), max_size=3)) if readable else []
    if builder.steps and draw(st.booleans()):
        outputs.append(builder.steps[-1].writes[0])
    return Program(
        name=draw(NAMES),
        steps=tuple(builder.steps),
        tensors=tuple(builder.tensors),
        buffers=tuple(builder.buffers),
        weights=tuple(builder.weights),
        inputs=tuple(Port(f"in{i}", tensor) for i, tensor in enumerate(inputs)),
        outputs=tuple(Port(f"out{i}", tensor) for i, tensor in enumerate(outputs)),
        views=tuple(builder.views),
    )


def two_parts() -> Program:
    """Two results side by side on one buffer of 192 bytes, the first of 64; the second is made a step later."""
    return Program(
        name="concat",
        steps=(Step("left", (0,), (1,)), Step("right", (0,), (2,)), Step("last", (1, 2), (3,))),
        tensors=tuple(
            Tensor((nbytes,), "uint8", buffer=buffer, offset=offset)
            for buffer, offset, nbytes in ((0, 0, 64), (1, 0, 64), (1, 64, 128), (2, 0, 64))
        ),
        buffers=(Buffer("x", 64), Buffer("both", 192), Buffer("y", 64)),
        weights=(),
        inputs=(Port("x", 0),),
        outputs=(Port("y", 3),),
    )


def chain(*sizes: int) -> Program:
    """A chain of kernels: the first size is the input, each further one the result of a step; bytes."""
    last = len(sizes) - 1
    return Program(
        name="chain",
        steps=tuple(Step(f"k{i}", (i,), (i + 1,), (f"node{i}",)) for i in range(last)),
        tensors=tuple(Tensor((size,), "uint8", buffer=i) for i, size in enumerate(sizes)),
        buffers=tuple(Buffer(f"b{i}", size) for i, size in enumerate(sizes)),
        weights=(),
        inputs=(Port("x", 0),),
        outputs=(Port("y", last),),
    )
