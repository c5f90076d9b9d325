"""Transformers as PyTorch exports them: an encoder (BERT), a decoder step with its cache (GPT-2), and ViT.

Devlin et al. (2019), Radford et al. (2019) and Dosovitskiy et al. (2021), of a size for small devices.
"""

from __future__ import annotations

import math

import numpy as np
import onnx
from onnx import TensorProto, helper

from .network import OPSET, Network, Shape

#: what is added to the scores of masked tokens
_MASKED = -10000.0
_GELU = 0.43


class Transformer(Network):
    """A network over sequences: tensors are batch × tokens × width, float32, batch 1."""

    def __init__(self, name: str, seed: int = 0):
        super().__init__(name, (), seed)
        self.shapes, self._mean_square, self._kinds = {}, {}, {}

    def input(self, name: str, shape: Shape, kind: int = TensorProto.FLOAT) -> str:
        self.shapes[name], self._mean_square[name], self._kinds[name] = shape, 1.0, kind
        return name

    def constant(self, title: str, what: str, value: object, kind: type = np.float32) -> str:
        return self._weight(title, what, np.asarray(value, kind))

    def linear(self, x: str, units: int) -> str:
        """Add a fully connected layer with bias on every token."""
        title, shape = self._title("MatMul"), self.shapes[x]
        weights = self._normal(title, (shape[-1], units), self._deviation(x, shape[-1]))
        product = self._node("MatMul", [x, weights], (*shape[:-1], units), 1.0, title)
        return self._node("Add", [self._bias(title, units), product], self.shapes[product], 1.0)

    def embedding(self, tokens: str, words: int, width: int) -> str:
        title = self._title("Gather")
        return self._node(
            "Gather", [self._normal(title, (words, width), 0.7), tokens], (*self.shapes[tokens], width), 0.5, title
        )

    def learnt(self, x: str, what: str, shape: Shape) -> str:
        """x plus learnt numbers."""
        title = self._title("Add")
        return self._node(
            "Add", [x, self._normal(f"{title}.{what}", shape, 0.7)], self.shapes[x], self._mean_square[x] + 0.5, title
        )

    def scaled(self, op: str, x: str, value: float, mean_square: float) -> str:
        title = self._title(op)
        return self._node(op, [x, self.constant(title, "value", value)], self.shapes[x], mean_square, title)

    def layer_norm(self, x: str, decomposed: bool = False) -> str:
        title, shape = self._title("LayerNormalization"), self.shapes[x]
        scale = self._weight(title, "weight", self._random.normal(1, 0.1, shape[-1]).astype(np.float32))
        bias = self._bias(title, shape[-1])
        if not decomposed:
            return self._node("LayerNormalization", [x, scale, bias], shape, 1.0, title, axis=-1, epsilon=1e-5)
        one = (*shape[:-1], 1)
        mean = self._node("ReduceMean", [x], one, 0.0, axes=[-1])
        centred = self._node("Sub", [x, mean], shape, 1.0)
        variance = self._node("ReduceMean", [self.scaled("Pow", centred, 2.0, 1.0)], one, 1.0, axes=[-1])
        deviation = self._node("Sqrt", [self.scaled("Add", variance, 1e-12, 1.0)], one, 1.0)
        normal = self._node("Div", [centred, deviation], shape, 1.0)
        return self._node("Add", [self._node("Mul", [normal, scale], shape, 1.0), bias], shape, 1.0)

    def gelu(self, x: str) -> str:
        shape = self.shapes[x]
        erf = self._node("Erf", [self.scaled("Div", x, math.sqrt(2), 1.0)], shape, 0.3)
        product = self._node("Mul", [x, self.scaled("Add", erf, 1.0, 1.0)], shape, 1.0)
        return self.scaled("Mul", product, 0.5, _GELU)

    def feed_forward(self, x: str, factor: int = 4) -> str:
        width = self.shapes[x][-1]
        with self.scope("mlp"):
            return self.linear(self.gelu(self.linear(x, factor * width)), width)

    def reshape(self, x: str, *shape: int) -> str:
        title = self._title("Reshape")
        return self._node(
            "Reshape", [x, self.constant(title, "shape", shape, np.int64)], shape, self._mean_square[x], title
        )

    def transpose(self, x: str, *order: int) -> str:
        shape = tuple(self.shapes[x][axis] for axis in order)
        return self._node("Transpose", [x], shape, self._mean_square[x], perm=list(order))

    def heads(self, x: str, count: int, *order: int) -> str:
        """x by heads: the axes are batch, tokens, heads and features of a head, taken in `order`."""
        batch, tokens, width = self.shapes[x]
        return self.transpose(self.reshape(x, batch, tokens, count, width // count), *order)

    def joined(self, one: str, other: str, axis: int) -> str:
        shape = list(self.shapes[one])
        shape[axis] += self.shapes[other][axis]
        return self._node("Concat", [one, other], tuple(shape), self._mean_square[one], axis=axis)

    def attend(self, query: str, key: str, value: str, mask: str | None = None) -> str:
        """Scaled dot-product attention by heads; the key has its tokens last; returns batch × tokens × width."""
        batch, count, tokens, features = self.shapes[query]
        product = self._node("MatMul", [query, key], (*self.shapes[query][:-1], self.shapes[key][-1]), float(features))
        scores = self.scaled("Div", product, math.sqrt(features), 1.0)
        if mask is not None:
            scores = self._node("Add", [scores, mask], self.shapes[scores], 1.0)
        shares = self._node("Softmax", [scores], self.shapes[scores], 0.01, axis=-1)
        means = self._node("MatMul", [shares, value], self.shapes[query], 0.1)
        return self.reshape(self.transpose(means, 0, 2, 1, 3), batch, tokens, count * features)

    def self_attention(self, x: str, heads: int, mask: str | None = None) -> str:
        """Attention with a projection each for queries, keys and values."""
        width = self.shapes[x][-1]
        with self.scope("attention"):
            query = self.heads(self.linear(x, width), heads, 0, 2, 1, 3)
            key = self.heads(self.linear(x, width), heads, 0, 2, 3, 1)
            value = self.heads(self.linear(x, width), heads, 0, 2, 1, 3)
            return self.linear(self.attend(query, key, value, mask), width)

    def joint_attention(self, x: str, heads: int) -> str:
        """Attention with one projection for queries, keys and values."""
        batch, tokens, width = self.shapes[x]
        with self.scope("attention"):
            every = self.reshape(self.linear(x, 3 * width), batch, tokens, 3, heads, width // heads)
            every = self.transpose(every, 2, 0, 3, 1, 4)
            query, key, value = (self.picked(every, 0, number) for number in range(3))
            return self.linear(self.attend(query, self.transpose(key, 0, 1, 3, 2), value), width)

    def picked(self, x: str, axis: int, number: int) -> str:
        title, shape = self._title("Gather"), self.shapes[x]
        index = self.constant(title, "index", number, np.int64)
        return self._node(
            "Gather", [x, index], shape[:axis] + shape[axis + 1 :], self._mean_square[x], title, axis=axis
        )

    def finished(self, outputs: dict[str, str]) -> onnx.ModelProto:
        """Build the network with results by the names of its outputs."""
        for name, result in outputs.items():
            self._nodes.append(helper.make_node("Identity", [result], [name], name=f"/{name}"))
        given = [helper.make_tensor_value_info(name, kind, self.shapes[name]) for name, kind in self._kinds.items()]
        made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, self.shapes[x]) for name, x in outputs.items()]
        graph = helper.make_graph(self._nodes, self.name, given, made, self._weights)
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8, producer_name="passfit zoo"
        )


def encoder(layers: int = 4, width: int = 128, tokens: int = 128, heads: int = 4, words: int = 1000) -> onnx.ModelProto:
    """Encode token ids and a mask into features of every token; the norms come last and are decomposed, as by opset 11."""
    net = Transformer("encoder")
    ids = net.input("input_ids", (1, tokens), TensorProto.INT64)
    mask = net.input("attention_mask", (1, tokens))
    with net.scope("mask"):
        title = net._title("Sub")
        mask = net._node("Sub", [net.constant(title, "one", 1.0), mask], (1, tokens), 1.0, title)
        mask = net.reshape(net.scaled("Mul", mask, _MASKED, 1.0), 1, 1, 1, tokens)
    with net.scope("embeddings"):
        x = net.layer_norm(net.learnt(net.embedding(ids, words, width), "positions", (1, tokens, width)), True)
    for number in range(layers):
        with net.scope(f"layer{number}"):
            x = net.layer_norm(net.add(net.self_attention(x, heads, mask), x), True)
            x = net.layer_norm(net.add(net.feed_forward(x), x), True)
    return net.finished({"last_hidden_state": x})


def decoder_step(
    layers: int = 4, width: int = 128, past: int = 127, heads: int = 4, words: int = 1000
) -> onnx.ModelProto:
    """Score the next token from the last one's id and the cached keys and values."""
    net = Transformer("decoder_step")
    ids = net.input("input_ids", (1, 1), TensorProto.INT64)
    kept = (1, heads, past, width // heads)
    before = [[net.input(f"past.{number}.{what}", kept) for what in ("key", "value")] for number in range(layers)]
    outputs = {}
    x = net.learnt(net.embedding(ids, words, width), "position", (1, 1, width))
    for number, (keys, values) in enumerate(before):
        with net.scope(f"layer{number}"):
            normal = net.layer_norm(x)
            with net.scope("attention"):
                query, key, value = (net.heads(net.linear(normal, width), heads, 0, 2, 1, 3) for _ in range(3))
                keys, values = net.joined(keys, key, 2), net.joined(values, value, 2)
                outputs |= {f"present.{number}.key": keys, f"present.{number}.value": values}
                seen = net.linear(net.attend(query, net.transpose(keys, 0, 1, 3, 2), values), width)
            x = net.add(x, seen)
            x = net.add(x, net.feed_forward(net.layer_norm(x)))
    with net.scope("head"):
        return net.finished({"logits": net.linear(net.layer_norm(x), words)} | outputs)


def vision_transformer(
    layers: int = 4, width: int = 192, image: int = 128, patch: int = 16, heads: int = 3
) -> onnx.ModelProto:
    """Classes of an image from its patches and a class token; the norms come first."""
    net = Transformer("vision_transformer")
    tokens = (image // patch) ** 2
    x = net.conv(net.input("input", (1, 3, image, image)), width, patch, patch, padding=0, bias=True)
    x = net.transpose(net.reshape(x, 1, width, tokens), 0, 2, 1)
    token = net._normal("class", (1, 1, width), 1.0)
    net.shapes[token], net._mean_square[token] = (1, 1, width), 1.0
    x = net.learnt(net.joined(token, x, 1), "positions", (1, tokens + 1, width))
    for number in range(layers):
        with net.scope(f"block{number}"):
            x = net.add(x, net.joint_attention(net.layer_norm(x), heads))
            x = net.add(x, net.feed_forward(net.layer_norm(x)))
    with net.scope("head"):
        return net.finished({"logits": net.linear(net.picked(net.layer_norm(x), 1, 0), 1000)})
