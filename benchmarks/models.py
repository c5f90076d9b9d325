"""List the models of the benchmarks: those of models.toml, then those of the zoo."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import tomli
from zoo import BUILDERS, TRANSFORMERS, build, write

from passfit import api

HERE = Path(__file__).parent
#: models of the zoo, written once by each version of its code
_ZOO = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "passfit" / "zoo"
_CODE = sorted(file for folder in ("zoo", "forms") for file in (HERE / folder).glob("*.py"))


@dataclass(frozen=True, eq=False)
class Model:
    """Model of models.toml, or of the zoo if it has no source; `recurrent` if the file holds LSTM, GRU or RNN nodes.

    Told from others by identity.
    """

    name: str
    source: str = ""
    recurrent: bool = False
    shapes: dict[str, list[int]] = field(default_factory=dict)
    fix: dict[str, float] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return f"{self.name} (recurrent)" if self.recurrent else self.name

    def file(self) -> Path:
        """Return the ONNX file; fetch or build it first. Raises ModelError."""
        return Path(api.resolve_source(self.source)) if self.source else build(self.name, _ZOO / _version())

    def arguments(self) -> list[str]:
        """Return MODEL and the options that name the model and close its inputs, for any command of passfit."""
        shapes = [f"--shape={name}={'x'.join(map(str, shape))}" for name, shape in self.shapes.items()]
        fixed = [f"--fix={name}={value}" for name, value in self.fix.items()]
        return [self.source or str(self.file()), f"--name={self.name}", *shapes, *fixed]


def _version() -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in _CODE)).hexdigest()[:8]


def written_once(name: str, builder: Callable[[], onnx.ModelProto]) -> Path:
    """Return the file of a model that `builder` makes, written once by each version of the code."""
    return write(_ZOO / _version() / f"{name}.onnx", builder)


def models() -> list[Model]:
    """Return all models, in the order of the tables."""
    listed = tomli.loads((HERE / "models.toml").read_text(encoding="utf-8"))["model"]
    return [Model(**each) for each in listed] + [Model(name) for name in (*BUILDERS, *TRANSFORMERS)]


def geometric_mean(ratios: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def spearman(rows: Sequence[Sequence[float]]) -> float:
    """Return the rank correlation of two columns; equal values are ranked in their order."""
    ranks = np.argsort(np.argsort(np.array(rows), axis=0, kind="stable"), axis=0)
    return float(np.corrcoef(ranks.T)[0, 1])
