"""Random choices of one case: dtypes, shapes, values and attributes that an operator's schema allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx.defs

#: dtypes of tensors, in words of ONNX's schemas
DTYPES: dict[str, np.dtype] = {
    "float": np.dtype("float32"), "double": np.dtype("float64"), "float16": np.dtype("float16"),
    "bfloat16": np.dtype(ml_dtypes.bfloat16), "bool": np.dtype("bool"),
    **{name: np.dtype(name) for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
}  # fmt: skip
#: floats at the edges of their arithmetic
_EDGES = (0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -1.0, 0.5, 2.5, -2.5, 1e-30, 3e4, -3e4)


class Illegal(Exception):
    """Draw that the operator's set does not allow: the case is drawn again."""


class Draw:
    """Random source of one operator, in the form `schema`; collects its operands and attributes."""

    def __init__(self, random: np.random.Generator, schema: onnx.defs.OpSchema):
        self.random, self.schema, self.version = random, schema, schema.since_version
        self.operands: list[np.ndarray | None] = []
        #: positions of operands that must be constants: shapes, axes, limits
        self.told: set[int] = set()
        self.attributes: dict[str, Any] = {}
        self.results = 1
        self._dtypes: dict[str, np.dtype] = {}
        self.wild = self.chance(0.25)

    def chance(self, probability: float = 0.5) -> bool:
        return bool(self.random.random() < probability)

    def integer(self, low: int, high: int) -> int:
        """Return an integer of the closed range."""
        return int(self.random.integers(low, high + 1))

    def choice(self, options: Sequence[Any]) -> Any:
        return options[self.integer(0, len(options) - 1)]

    def dtype(self, position: int = 0, among: Sequence[str] | None = None) -> np.dtype:
        """Return the dtype of an operand: the same one for all operands of a type variable."""
        word = self.schema.inputs[min(position, len(self.schema.inputs) - 1)].type_str
        if word not in self._dtypes:
            allowed = next(
                (each.allowed_type_strs for each in self.schema.type_constraints if each.type_param_str == word), [word]
            )
            names = [each[7:-1] for each in allowed if each.startswith("tensor(")]
            names = [name for name in names if name in DTYPES and (among is None or name in among)]
            if not names:
                raise Illegal(f"no dtype for {word}")
            usual = "float" in names and self.chance(0.6)
            self._dtypes[word] = DTYPES["float" if usual else self.choice(names)]
        return self._dtypes[word]

    def dims(self, low: int, high: int, most: int = 5) -> tuple[int, ...]:
        """Return a shape of a rank in the closed range; sizes are small, and often 1."""
        rank = self.integer(low, high)
        return tuple(1 if self.chance(0.15) else self.integer(2, most if rank < 5 else 3) for _ in range(rank))

    def axis(self, rank: int) -> int:
        return self.integer(-rank, rank - 1)

    def axes(self, rank: int) -> list[int]:
        """Return some axes, once each, from either end."""
        chosen = self.random.permutation(rank)[: self.integer(1, rank)]
        return [int(axis) - (rank if self.chance(0.3) else 0) for axis in chosen]

    def broadcast(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return a shape that spreads over `shape`."""
        kept = list(shape[self.integer(0, len(shape)) if shape and self.chance() else 0 :])
        return tuple(1 if self.chance(0.3) else size for size in kept)

    def values(
        self, shape: Sequence[int], dtype: np.dtype, low: float | None = None, high: float | None = None
    ) -> np.ndarray:
        """Return random values: in the closed range if given, else at the edges of the dtype in wild cases."""
        kind = dtype.kind
        if kind == "b":
            return self.random.random(shape) < 0.5
        if kind in "iu":
            info = np.iinfo(dtype)
            least, most = (info.min, info.max) if self.wild and low is None else (max(info.min, -9), min(info.max, 9))
            found = self.random.integers(
                least if low is None else int(low),
                int(most if high is None else high),
                shape,
                np.int64 if kind == "i" else np.uint64,
                endpoint=True,
            )
            return found.astype(dtype)
        if low is not None or high is not None:
            return np.asarray(self.random.uniform(low, high, shape)).astype(dtype)
        found = np.asarray(self.random.standard_normal(shape) * self.choice((0.1, 1.0, 1.0, 5.0)))
        if self.wild and found.size:
            edges = self.random.random(found.shape) < 0.3
            found = np.where(edges, self.random.choice(_EDGES, found.shape), found)
        if self.chance(0.2):
            found = np.round(found * 2) / 2  # equal values, halves
        return found.astype(dtype)

    def give(self, value: np.ndarray | None, told: bool = False) -> None:
        """Append an operand; `told`: it must be a constant."""
        if told:
            self.told.add(len(self.operands))
        self.operands.append(value)

    def data(
        self, shape: Sequence[int], position: int = 0, low: float | None = None, high: float | None = None
    ) -> np.ndarray:
        """Append an operand of random values, of the dtype of the schema's input `position`."""
        value = self.values(shape, self.dtype(position), low, high)
        self.give(value)
        return value

    def tell(self, values: Sequence[int] | int, dtype: str = "int64") -> None:
        """Append a constant operand of integers."""
        self.give(np.asarray(values, dtype), told=True)

    def has(self, attribute: str) -> bool:
        return attribute in self.schema.attributes

    def attribute(self, name: str, value: Any, probability: float = 0.7) -> bool:
        """Set an attribute that the schema has, with a probability; tell whether it is set."""
        if value is not None and self.has(name) and (self.schema.attributes[name].required or self.chance(probability)):
            self.attributes[name] = value
            return True
        return False

    def takes(self, position: int) -> bool:
        """Tell whether the schema has an input at `position`."""
        return position < len(self.schema.inputs) or "Variadic" in str(self.schema.inputs[-1].option)
