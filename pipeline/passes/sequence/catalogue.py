"""Catalogue of passes by name, and the parser of spec strings."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields

from ...errors import SequenceError, did_you_mean
from ..base import Pass
from ..graph.distribute_loops import DistributeLoops
from ..graph.folding.fold_constant import FoldConstant
from ..graph.fuse_operators import FuseOperators
from ..graph.heads.split_heads import SplitHeads
from ..graph.legalize import Legalize
from ..graph.mapping.fuse_by_mapping import FuseByMapping
from ..graph.rules.book import RULES
from ..graph.simplify import Simplify
from ..graph.stock import STOCK_PASSES
from ..graph.to_mixed_precision import ToMixedPrecision
from ..program.cut_sums import CutSums
from ..program.layout import Layout
from ..program.order import Order
from ..program.rematerialise import Rematerialise
from ..program.share import Share
from ..program.split import SplitChannels, SplitRows

#: raised when a pass changes its effect, so that a sequence of another catalogue is recognised
CATALOGUE_VERSION = "1"

_PASSES: tuple[type[Pass], ...] = (
    *STOCK_PASSES, *RULES, CutSums, DistributeLoops, FoldConstant, FuseByMapping, FuseOperators, Layout, Legalize, Order,
    Rematerialise, Share, Simplify, SplitChannels, SplitHeads, SplitRows, ToMixedPrecision,
)  # fmt: skip

CATALOGUE: dict[str, type[Pass]] = {kind.name: kind for kind in sorted(_PASSES, key=lambda kind: kind.name)}

_SPEC = re.compile(r"([a-z0-9-]+)(?:\{([^{}]*)\})?")


def parse_spec(spec: str) -> Pass:
    """Parse a spec string. Raises SequenceError for an unknown pass, option or value."""
    matched = _SPEC.fullmatch(spec.strip())
    if matched is None:
        raise SequenceError(f"'{spec}' is not a pass spec.", "Write it like `name` or `name{option=value}`.")
    name, body = matched.groups()
    kind = CATALOGUE.get(name)
    if kind is None:
        raise SequenceError(f"There is no pass '{name}'.", did_you_mean(name, CATALOGUE))
    options: dict[str, object] = {}
    known = {field.name: field for field in fields(kind)}
    for item in filter(None, (body or "").split(",")):
        option, equals, value = item.partition("=")
        if not equals or option not in known:
            raise SequenceError(f"The pass '{name}' has no option '{option}'.", did_you_mean(option, known))
        if option in options:
            raise SequenceError(f"'{spec}': {option} is given twice.", "Keep one of them.")
        options[option] = _value(spec, option, value, str(known[option].type))
    missing = [
        field.name
        for field in known.values()
        if field.default is MISSING and field.default_factory is MISSING and field.name not in options
    ]
    if missing:
        raise SequenceError(f"'{spec}': {', '.join(missing)} is not given.", "See `passfit passes`.")
    try:
        return kind(**options)
    except (TypeError, ValueError) as error:
        raise SequenceError(f"'{spec}': {error}.", "See `passfit passes`.") from error


def _value(spec: str, option: str, text: str, kind: str) -> object:
    """Convert the text of an option; `kind` is the field's annotation as a string."""
    if kind == "int":
        if not re.fullmatch(r"\d+", text):
            raise SequenceError(f"'{spec}': {option} is '{text}', not a whole number.", "See `passfit passes`.")
        return int(text)
    return text
