"""Operators of ONNX Runtime's transformer optimiser, with inputs: node, constants, inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper

VENDOR = "com.microsoft"
RNG = np.random.default_rng(5)
Case = tuple[onnx.NodeProto, dict[str, Any], dict[str, np.ndarray]]


def _node(
    op: str, *inputs: str, outputs: tuple[str, ...] = ("y",), domain: str = VENDOR, **attributes: Any
) -> onnx.NodeProto:
    return helper.make_node(op, list(inputs), list(outputs), name=op.lower(), domain=domain, **attributes)


def _floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def _norm(*inputs: str, outputs: tuple[str, ...] = ("y",), simplified: bool = False) -> Case:
    values = {"s": _floats(2, 3, 8), "b": _floats(8), "g": _floats(8), "c": _floats(8)}
    node = _node(f"Skip{'Simplified' * simplified}LayerNormalization", "x", *inputs, outputs=outputs, epsilon=1e-5)
    return (
        node,
        {name: values[name] for name in inputs if name in "gbc" and name},
        {"x": _floats(2, 3, 8), "s": values["s"]},
    )


def _embedding(*inputs: str, outputs: tuple[str, ...], **attributes: Any) -> Case:
    tables = {"w": _floats(20, 8), "p": _floats(9, 8), "t": _floats(2, 8), "g": _floats(8), "b": _floats(8)}
    given = {"x": (2, 5, 20), "k": (2, 5, 2), "m": (2, 5, 2), "n": (2, 5, 9)}
    values = {
        name: RNG.integers(0, most, (batch, tokens)).astype(np.int32)
        for name, (batch, tokens, most) in given.items()
        if name in inputs
    }
    return (
        _node("EmbedLayerNormalization", *inputs, outputs=outputs, epsilon=1e-6, **attributes),
        {k: v for k, v in tables.items() if k in inputs},
        values,
    )


_WEIGHTS = {"w": _floats(8, 24) / 3, "b": _floats(24)}
_MASKS: dict[str, np.ndarray] = {
    "of lengths": np.int32([4]), "of keys": np.int32([[1, 1, 0, 1, 0]]), "of queries": np.tril(np.ones((1, 5, 5), np.int32)),
}  # fmt: skip
_BYTES = {
    "w": RNG.integers(0, 255, (8, 24)).astype(np.uint8), "b": _floats(24), "xs": np.float32(0.01), "ws": np.float32(0.02), "xz": np.uint8(120),
    "wz": np.uint8(128),
}  # fmt: skip
_THREE = {name: _floats(2, tokens, 8) for name, tokens in (("x", 4), ("k", 6), ("v", 6))}

CASES: dict[str, Case] = {
    "Gelu": (_node("Gelu", "x"), {}, {"x": _floats(3, 50)}),
    "BiasGelu": (_node("BiasGelu", "x", "b"), {"b": _floats(50)}, {"x": _floats(3, 50)}),
    "FastGelu": (_node("FastGelu", "x", "b"), {"b": _floats(50)}, {"x": _floats(3, 50)}),
    "FastGelu without bias": (_node("FastGelu", "x"), {}, {"x": _floats(3, 50)}),
    "QuickGelu": (_node("QuickGelu", "x", alpha=1.5), {}, {"x": _floats(3, 50)}),
    "SimplifiedLayerNormalization": (_node("SimplifiedLayerNormalization", "x", "g", domain="", axis=-1, epsilon=1e-4), {"g": _floats(8)}, {"x": _floats(2, 3, 8)}),
    "SkipLayerNormalization": _norm("s", "g"),
    "SkipLayerNormalization, its sum": _norm("s", "g", "c", "b", outputs=("y", "", "", "z")),
    "SkipSimplifiedLayerNormalization": _norm("s", "g", simplified=True),
    "SkipSimplifiedLayerNormalization, its sum": _norm("s", "g", "b", outputs=("y", "", "", "z"), simplified=True),
    "EmbedLayerNormalization": _embedding("x", "k", "w", "p", "t", "g", "b", "m", outputs=("y", "z")),
    "EmbedLayerNormalization without segments": _embedding("x", "", "w", "p", "", "g", "b", outputs=("y", "z")),
    "EmbedLayerNormalization by places": _embedding("x", "k", "w", "p", "t", "g", "b", "", "n", outputs=("y", "", "z")),
    "Attention": (_node("Attention", "x", "w", "b", num_heads=2), _WEIGHTS, {"x": _floats(2, 5, 8)}),
    "Attention of the past": (_node("Attention", "x", "w", "b", num_heads=4, unidirectional=1, scale=0.3), _WEIGHTS, {"x": _floats(2, 5, 8)}),
    "Attention of other values": (_node("Attention", "x", "w", "b", num_heads=2, qkv_hidden_sizes=[6, 6, 12]), _WEIGHTS, {"x": _floats(2, 5, 8)}),
    "QAttention": (_node("QAttention", "x", "w", "b", "xs", "ws", "", "xz", "wz", num_heads=2), _BYTES, {"x": RNG.integers(0, 255, (2, 5, 8)).astype(np.uint8)}),
    "MultiHeadAttention": (_node("MultiHeadAttention", "x", "k", "v", num_heads=2), {}, _THREE),
    "MultiHeadAttention with biases": (
        _node("MultiHeadAttention", "x", "k", "v", "b", "", "a", num_heads=2), {"b": _floats(24), "a": _floats(1, 2, 4, 6)}, _THREE),
    "MultiHeadAttention, masked": (_node("MultiHeadAttention", "x", "k", "v", "", "m", num_heads=4), {"m": np.int32([[1, 1, 1, 0, 0, 0], [1, 0, 1, 1, 1, 1]])}, _THREE),
}  # fmt: skip
for _said, _mask in _MASKS.items():
    CASES[f"Attention, a mask {_said}"] = (
        _node("Attention", "x", "w", "b", "m", num_heads=2),
        _WEIGHTS,
        {"x": _floats(1, 5, 8), "m": _mask},
    )

#: paddings on the left and right, ends and starts of each row, and what is added to scores that a mask forbids
_LEFT = np.int32([[0, 0, 1, 1, 1], [0, 1, 1, 1, 0]])
_FORMS: dict[str, tuple[np.ndarray, dict[str, Any]]] = {
    "padded on the left": (_LEFT, {"unidirectional": 1}),
    "with a small filter": (_LEFT, {"unidirectional": 1, "mask_filter_value": -1.0}),
    "with the least filter": (_LEFT, {"unidirectional": 1, "mask_filter_value": float(np.finfo(np.float32).min)}),
    "of ends": (np.int32([3, 5]), {"unidirectional": 1}),
    "of ends and starts": (np.int32([4, 5, 1, 2]), {}),
    "of ends and starts, of the past": (np.int32([4, 5, 1, 2]), {"unidirectional": 1}),
    "of one number for all": (np.int32([[0], [1]]), {}),
    "of other numbers": (np.int32([[-1, 2, 1, 0, 1], [1, 1, 3, 1, -2]]), {}),
    "of queries, of the past": (np.stack([np.eye(5, dtype=np.int32)] * 2), {"unidirectional": 1, "mask_filter_value": -2.0}),
}  # fmt: skip
for _said, (_mask, _attributes) in _FORMS.items():
    CASES[f"Attention, a mask {_said}"] = (
        _node("Attention", "x", "w", "b", "m", num_heads=2, **_attributes),
        _WEIGHTS,
        {"x": _floats(2, 5, 8), "m": _mask},
    )
_FOUR = {"x": _floats(2, 4, 8), "k": _floats(2, 2, 6, 4), "v": _floats(2, 2, 6, 4)}
CASES |= {
    "Attention of the past, a small filter": (
        _node("Attention", "x", "w", "b", num_heads=2, unidirectional=1, mask_filter_value=-1.0), _WEIGHTS, {"x": _floats(2, 5, 8)}),
    "MultiHeadAttention of the past, more keys": (_node("MultiHeadAttention", "x", "k", "v", num_heads=2, unidirectional=1), {}, _THREE),
    "MultiHeadAttention of heads": (_node("MultiHeadAttention", "x", "k", "v", num_heads=2), {}, _FOUR),
    "SkipLayerNormalization, its mean": _norm("s", "g", "c", "b", outputs=("y", "m", "i", "z")),
    "SkipSimplifiedLayerNormalization, its deviation": _norm("s", "g", outputs=("y", "", "i"), simplified=True),
    "SimplifiedLayerNormalization, two axes": (
        _node("SimplifiedLayerNormalization", "x", "g", domain="", outputs=("y", "i"), axis=1), {"g": _floats(3, 8)}, {"x": _floats(2, 3, 8)}),
    "LayerNormalization of an old set": (
        _node("LayerNormalization", "x", "g", "b", domain="", outputs=("y", "m", "i"), axis=1), {"g": _floats(3, 8), "b": _floats(3, 8)}, {"x": _floats(2, 3, 8)}),
}  # fmt: skip


_ROTARY = {
    "c": np.cos(_ANGLES := np.outer(np.arange(12), [1.0, 0.3])).astype(np.float32),
    "s": np.sin(_ANGLES).astype(np.float32),
}
_PLACES = np.asarray([[3, 1, 2], [0, 5, 4]])


def _shared(
    tokens: int,
    past: int = 0,
    lengths: tuple[int, ...] = (),
    total: int | None = None,
    packed: bool = False,
    **attributes: Any,
) -> Case:
    """Return a GroupQueryAttention of four heads and two of the cache, which has room for `past` tokens; `lengths` are of all."""
    batch = 1 if past and tokens > 1 else 2
    lengths = lengths or (past + tokens,) * batch
    given = {"x": _floats(batch, tokens, 128 if packed else 64)}
    if not packed:
        given |= {name: _floats(batch, tokens, 32) for name in "kv"}
    if past:
        given |= {name: _floats(batch, 2, past, 16) for name in ("pk", "pv")}
    names = ["x", *(["", ""] if packed else "kv"), *(["pk", "pv"] if past else ["", ""]), "l", "t"]
    constants = {"l": np.int32(lengths) - 1, "t": np.int32(total or max(lengths))}
    if attributes.get("do_rotary"):
        names, constants = [*names, "c", "s"], constants | {name: np.tile(table, 4) for name, table in _ROTARY.items()}
    node = _node("GroupQueryAttention", *names, outputs=("y", "pk2", "pv2"), num_heads=4, kv_num_heads=2, **attributes)
    return node, constants, given


CASES |= {
    "RotaryEmbedding": (_node("RotaryEmbedding", "x", "p", "c", "s"), {"p": _PLACES, **_ROTARY}, {"x": _floats(2, 3, 8)}),
    "RotaryEmbedding of pairs": (_node("RotaryEmbedding", "x", "p", "c", "s", interleaved=1), {"p": _PLACES, **_ROTARY}, {"x": _floats(2, 2, 3, 4)}),
    "RotaryEmbedding of a part, from a position on": (
        _node("RotaryEmbedding", "x", "p", "c", "s", num_heads=2, rotary_embedding_dim=4), {"p": np.asarray([7]), **_ROTARY}, {"x": _floats(2, 3, 12)}),
    "Inverse": (_node("Inverse", "x"), {}, {"x": _floats(3, 4, 4)}),
    "Trilu": (_node("Trilu", "x", upper=0), {}, {"x": _floats(3, 4)}),
    "GroupQueryAttention": _shared(5),
    "GroupQueryAttention, packed and turned": _shared(5, packed=True, do_rotary=1),
    "GroupQueryAttention, turned by pairs, within a cap and a window": _shared(6, do_rotary=1, rotary_interleaved=1, softcap=2.0, local_window_size=3),
    "GroupQueryAttention with a cache that grows": _shared(1, past=5, do_rotary=1, scale=0.3),
    "GroupQueryAttention of some tokens with a cache that grows": _shared(3, past=4),
    "GroupQueryAttention of rows of other lengths": _shared(1, past=6, lengths=(4, 6), do_rotary=1, rotary_interleaved=1),
    "GroupQueryAttention with a cache that is full": _shared(1, past=6, lengths=(6, 6), do_rotary=1),
}  # fmt: skip
