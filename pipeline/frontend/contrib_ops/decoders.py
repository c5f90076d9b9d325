"""Express operators of exported decoders: rotary embeddings, and attention of queries that share heads of a cache.

q ─► rotate ───────────────────────┐
k ─► rotate ─► write into past key ─┴─► q · kᵀ · scale ─► causal mask ─► softmax ─► · v
v ───────────► write into past value ──────────────────────────────────────────────┘
"""

from __future__ import annotations

import math

import numpy as np

from ..canonical.graph_context import NodeView, Rule
from ..canonical.node_builder import NodeBuilder
from ..canonical.node_form import UnsupportedForm
from ..canonical.operators.elimination import MOST_ROWS, inverse
from .elementwise import own

#: inputs and attributes of GroupQueryAttention beyond a plain cache
_MORE = ("head_sink", "k_scale", "v_scale", "q_norm_weight", "k_norm_weight", "query_seqlens")
_OPTIONS = ("qk_output", "smooth_softmax", "kv_cache_bit_width", "sliding_window_cache")


def _rotated(
    value: str, tables: tuple[str, str], width: int, rotary: int, interleaved: bool, build: NodeBuilder
) -> str:
    """Build the rotation of the first `rotary` numbers of each head; `tables` are cosines and sines of half as many."""
    cos, sin = tables

    def part(start: int, end: int, step: int = 1) -> str:
        return build.node("Slice", value, *(build.integers(each) for each in (start, end, -1, step)))

    half = rotary // 2
    one, other = (part(0, rotary, 2), part(1, rotary, 2)) if interleaved else (part(0, half), part(half, rotary))
    turned = [
        build.node("Sub", build.node("Mul", one, cos), build.node("Mul", other, sin)),
        build.node("Add", build.node("Mul", one, sin), build.node("Mul", other, cos)),
    ]
    if interleaved:
        pairs = [build.node("Unsqueeze", each, build.integers(-1)) for each in turned]
        turned = [build.node("Reshape", build.node("Concat", *pairs, axis=-1), build.integers(0, 0, 0, rotary))]
    rest = [part(rotary, width)] if rotary < width else []
    return build.node("Concat", *turned, *rest, axis=-1)


def _tables(caches: tuple[str, str], positions: str, axis: int, build: NodeBuilder) -> tuple[str, str]:
    """Build cosines and sines at positions (batch, tokens), to be broadcast over heads, the dimension `axis`."""
    places = build.from_zero(positions, np.int64)
    cos, sin = (
        build.node("Unsqueeze", build.node("Gather", cache, places, axis=0), build.integers(axis)) for cache in caches
    )
    return cos, sin


def _rotary(node: NodeView, build: NodeBuilder) -> None:
    """Build the embedding of (batch, tokens, heads · width) or (batch, heads, tokens, width)."""
    x, positions, *caches = node.inputs(4)
    rank, half, last = node.rank(x), node.extent(caches[0], 1), node.extent(x, (node.rank(x) or 1) - 1)
    tokens = node.extent(x, 2 if rank == 4 else 1)
    if node.get("is_packed_batching"):
        raise UnsupportedForm("its attribute 'is_packed_batching' is not supported")
    if rank not in (3, 4) or half is None or last is None or tokens is None:
        raise UnsupportedForm("the shapes of its input and tables are not known")
    rotary, heads = 2 * half, node.get("num_heads", 0)
    width = last if rank == 4 else last // heads if heads else rotary
    positions = build.cast(positions, np.int64)
    if node.rank(1) == 1:  # the position of the first token
        positions = build.node(
            "Unsqueeze", build.node("Add", positions, build.integers(*range(tokens))), build.integers(0)
        )
    value = x if rank == 4 else build.node("Reshape", x, build.integers(0, 0, -1, width))
    tables = _tables((caches[0], caches[1]), positions, 1 if rank == 4 else 2, build)
    turned = _rotated(value, tables, width, rotary, bool(node.get("interleaved")), build)
    build.node(
        "Identity" if rank == 4 else "Reshape",
        turned,
        *([] if rank == 4 else [build.integers(0, 0, -1)]),
        result=node.result,
    )


def _group_query(node: NodeView, build: NodeBuilder) -> None:
    """Build attention with a cache as long as it may get: new keys and values are written from each row's length on."""
    q, k, v, past_k, past_v, last, total, cos, sin, ids, bias, *more = node.inputs(17)
    for name, given in (*zip(_MORE, more), *((name, node.get(name)) for name in _OPTIONS)):
        if given and given != -1:
            raise UnsupportedForm(f"its input or attribute '{name}' is not supported")
    if node.get("causal", 1) != 1:
        raise UnsupportedForm("its attribute 'causal' is 0")
    heads, groups, kind = node.attributes["num_heads"], node.attributes["kv_num_heads"], node.dtype(q)
    batch, tokens, whole = (node.extent(q, axis) for axis in range(3))
    length = node.extent(past_k, 2) if past_k else 0
    if batch is None or tokens is None or whole is None or length is None:
        raise UnsupportedForm("the shapes of its query and cache are not known")
    width = whole // heads if k else whole // (heads + 2 * groups)
    if not k:
        sizes = build.integers(heads * width, groups * width, groups * width)
        q, k, v = build.many("Split", [q, sizes], 3, axis=-1)
    q, k, v = (build.node("Reshape", each, build.integers(batch, tokens, -1, width)) for each in (q, k, v))
    known = node.constant(total)
    steps, room = build.integers(*range(tokens)), max(length, tokens, 0 if known is None else int(known.item()))
    positions = build.node("Unsqueeze", steps, build.integers(0))
    if past_k:
        first = build.node("Sub", build.cast(last, np.int64), build.integers(tokens - 1))
        positions = build.node("Add", build.node("Reshape", first, build.integers(-1, 1)), steps)
    if node.get("do_rotary"):
        half = node.extent(cos, 1)
        if half is None:
            raise UnsupportedForm("the shape of its table of cosines is not known")
        places = build.cast(ids, np.int64) if ids else positions
        tables, apart = _tables((cos, sin), places, 2, build), bool(node.get("rotary_interleaved"))
        q, k = (_rotated(each, tables, width, 2 * half, apart, build) for each in (q, k))
    q, k, v = (build.node("Transpose", each, perm=[0, 2, 1, 3]) for each in (q, k, v))
    keys, values = (
        _written(past, new, positions, (batch, groups, tokens, width), (length, room), kind, build)
        for past, new in ((past_k, k), (past_v, v))
    )
    for name, value in zip(node.output[1:], (keys, values)):
        if name:
            build.node("Identity", value, result=name)
    shared = build.node("Reshape", q, build.integers(batch, groups, heads // groups, tokens, width))
    keys = build.node("Unsqueeze", build.node("Transpose", keys, perm=[0, 1, 3, 2]), build.integers(2))
    scale = node.get("scale") or 1 / math.sqrt(width)
    scores = build.node("Mul", build.node("MatMul", shared, keys), build.number(scale, kind))
    if cap := node.get("softcap"):
        limit = build.number(cap, kind)
        scores = build.node("Mul", build.node("Tanh", build.node("Div", scores, limit)), limit)
    if bias:
        many = node.extent(bias, 1) != 1
        scores = build.node(
            "Add", scores, build.node("Reshape", bias, build.integers(0, groups if many else 1, -1, tokens, room))
        )
    here = build.node("Unsqueeze", positions, build.integers(1, 2, 4))
    places = build.integers(*range(room))
    hidden = build.node("Greater", places, here)
    if (window := node.get("local_window_size", -1)) > 0:
        beyond = build.node("LessOrEqual", places, build.node("Sub", here, build.integers(window)))
        hidden = build.node("Or", hidden, beyond)
    lowest = build.number(np.finfo(kind).min, kind)
    weights = build.node("Softmax", build.node("Where", hidden, lowest, scores), axis=-1)
    made = build.node("MatMul", weights, build.node("Unsqueeze", values, build.integers(2)))
    made = build.node("Transpose", made, perm=[0, 3, 1, 2, 4])
    build.node("Reshape", made, build.integers(batch, tokens, heads * width), result=node.result)


def _written(
    past: str, new: str, positions: str, shape: tuple[int, ...], lengths: tuple[int, int], kind: np.dtype, build: NodeBuilder
) -> str:  # fmt: skip
    """Build a cache with new rows at `positions`; without a past they are all of it."""
    if not past:
        return new
    length, room = lengths
    if room > length:
        zeros = build.constant(np.zeros((*shape[:2], room - length, shape[3]), kind))
        past = build.node("Concat", past, zeros, axis=2)
    rows = build.from_zero(build.node("Unsqueeze", positions, build.integers(1, 3)), np.int64)
    written = build.node("ScatterElements", past, build.node("Expand", rows, build.integers(*shape)), new, axis=2)
    # nothing is left of what was behind the last token
    last = build.node("Slice", rows, build.integers(-1), build.integers(shape[2]), build.integers(2))
    places = build.constant(np.arange(room).reshape(1, 1, room, 1))
    return build.node("Where", build.node("Greater", places, last), build.constant(np.zeros((), kind)), written)


def _inverse(node: NodeView, build: NodeBuilder) -> None:
    rows = node.extent(0, (node.rank(0) or 1) - 1)
    if rows is None or rows > MOST_ROWS:
        raise UnsupportedForm(
            f"its matrices are of {'unknown size' if rows is None else f'{rows} rows'}; {MOST_ROWS} are the most"
        )
    inverse(node.input[0], rows, node.dtype(0), node.result, build)


RULES: dict[str, Rule] = {
    "GroupQueryAttention": _group_query,
    "Inverse": _inverse,
    "RotaryEmbedding": _rotary,
    "Trilu": own,
}
