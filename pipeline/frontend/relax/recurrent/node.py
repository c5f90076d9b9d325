"""Convert an LSTM, GRU or RNN node into a call of its kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from tvm import relax

from ...canonical.operators.recurrent_activations import read_activations
from .arrays import Cell, Operands
from .kernel import recurrent
from .weights import packed, summed

#: names of the operands in the node's order; c and peephole are an LSTM's
_NAMES = ("x", "w", "r", "bias", "lengths", "h", "c", "peephole")
_REVERSE = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


def convert_recurrent(
    builder: relax.BlockBuilder,
    op: str,
    inputs: Sequence[relax.Expr | None],
    attributes: Mapping[str, Any],
    outputs: Sequence[str],
) -> relax.Tuple:
    """Emit the kernel of a node with time first (`layout` 0); return its results in the node's order.

    `outputs` are the node's, empty for one that nothing reads: its place in the tuple holds Y_h.
    """
    given = {name: each for name, each in zip(_NAMES, inputs) if each is not None}
    reverse = _REVERSE[_text(attributes.get("direction", "forward"))]
    clip = attributes.get("clip")
    cell = Cell(
        op,
        read_activations(op, attributes, len(reverse)),
        reverse,
        float(clip) if clip else None,
        bool(attributes.get("linear_before_reset", 0)),
        bool(attributes.get("input_forget", 0)),
        bool(outputs[0]),
    )
    hidden = int(given["r"].ty.shape[2])
    for name in ("w", "r"):
        given[name] = packed(builder, given[name], cell)
    if "bias" in given:
        given["bias"] = summed(builder, given["bias"], cell)
    places = Operands(**{name: number for number, name in enumerate(given)})
    kernel = partial(recurrent, cell=cell, places=places, hidden=hidden)
    call = builder.call_te(kernel, *given.values(), primfunc_name_hint=op.lower())
    made = builder.emit(call)
    count = 1 + (op == "LSTM") + cell.sequence
    results = [builder.emit(relax.TupleGetItem(made, number)) for number in range(count)] if count > 1 else [made]
    h, c = results[0], results[1] if op == "LSTM" else results[0]
    return relax.Tuple([results[-1] if cell.sequence else h, h, c][: max(len(outputs), 2)])


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
