"""tuning.json: what was tried for each kernel, and what is taken. No TVM: an empty one is written and read at once.

    {"format": 4, "target": "x86-64", "device": {…}, "tvm": "0.27.0.post1", "how": "native, caches warm", "unit": "ns",
     "seed": 0, "layout": {"spec": "layout{steps=0+3,program=…}", "before": 9, "after": 8, "tried": 12, "proved": true,
     "taken": true, "whole": {"unit": "ms", "before": 2.4, "after": 2.3, "taken": true}, "note": ""},
     "whole": {"unit": "ms", "before": 2.3, "after": 1.9, "taken": true},
     "kernels": [{"fingerprint": "…", "operands": ["float32 1x64x56x56", …], "calls": 2, "before": 9, "after": 7,
                  "choice": "tile{along=1,vectors=2,rows=1x6}", "tried": {"rules": 12, "meta-schedule": 0}}]}
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Optional, Union

from ..errors import ConfigError, SequenceError
from ..kernels.schedule.tuned import Tuning
from ..passes.program.layout import Layout
from ..passes.sequence.catalogue import parse_spec
from ..support.text_files import decode, json_lines, read_text, write_text
from ..targets import Target

#: rises when a file means something else
FORMAT = 4
#: the choice of a kernel that keeps the rules' schedule
RULES = "rules"
_AGAIN = "Run `passfit tune` again."


@dataclass(frozen=True)
class TunedKernel:
    """One kernel: `choice` is a spec (see `kernels.schedule.choices`), a trace as JSON, or RULES.

    `operands` are the dtypes and shapes of its parameters as TVM made it, `calls` how often a run calls it; `before` and
    `after` what a call takes by the rules' choice and by this one, in the unit of the database, 0 where it is not known.
    `tried` is how many schedules of each kind were measured; a `note` says why there were none.
    """

    fingerprint: str
    operands: list[str]
    calls: int
    before: int
    after: int
    choice: Union[str, list]
    tried: dict[str, int] = field(default_factory=dict)
    note: str = ""

    @property
    def spec(self) -> str:
        return self.choice if isinstance(self.choice, str) else json.dumps(self.choice)


@dataclass(frozen=True)
class LibraryComparison:
    """What a run of the library takes by the rules and with all choices, in `unit`: they are taken where it is less."""

    unit: str
    before: float
    after: float
    taken: bool


@dataclass(frozen=True)
class AdoptedTuning:
    """Apply these schedules and this layout to a program; false without either.

    `digest` is the sha256 of their file, empty without one.
    """

    schedules: Tuning = Tuning()
    layout: Optional[Layout] = None
    digest: str = ""

    def __bool__(self) -> bool:
        return bool(self.schedules) or self.layout is not None


@dataclass(frozen=True)
class LayoutResult:
    """How results lie (see `passes.program.layout`): the `spec` of what the kernels measured one by one are best with, empty
    where that is planes; what a run of those takes `before` and `after`, in the unit of the database, `tried` of them
    in other layouts, which is `proved` to be the least by what was measured.

    It is `taken` where the whole library is better with it; if not, a `note` says why.
    """

    spec: str
    before: int
    after: int
    tried: int
    proved: bool
    taken: bool = False
    whole: Optional[LibraryComparison] = None
    note: str = ""


@dataclass(frozen=True)
class Database:
    """The kernels tuned for one target, `how` they were measured there, and the `unit` of that: ns or instructions.

    The kernels are those of the program with its `layout`, where that is taken. `whole` is None where libraries were
    not compared.
    """

    target: str
    device: dict[str, object]
    how: str = "native"
    unit: str = "ns"
    seed: int = 0
    layout: Optional[LayoutResult] = None
    whole: Optional[LibraryComparison] = None
    kernels: tuple[TunedKernel, ...] = ()
    format: int = FORMAT
    tvm: str = field(default_factory=lambda: importlib.metadata.version("apache-tvm"))

    @property
    def choices(self) -> dict[str, str]:
        """Specs of kernels that do not keep the rules' schedule, by fingerprint; none where the whole is no better."""
        if self.whole is not None and not self.whole.taken:
            return {}
        return {each.fingerprint: each.spec for each in self.kernels if each.choice != RULES}


    @property
    def adopted(self) -> AdoptedTuning:
        """Select the schedules and the layout that made the whole library faster."""
        return AdoptedTuning(Tuning(self.choices), self.layout_pass)

    @property
    def layout_pass(self) -> Layout | None:
        """The layout, where it is taken. Raises SequenceError where its spec is none."""
        if self.layout is None or not self.layout.taken:
            return None
        found = parse_spec(self.layout.spec)
        if not isinstance(found, Layout):
            raise SequenceError(f"'{self.layout.spec[:80]}' is no layout.", _AGAIN)
        return found


def device_of(target: Target) -> dict[str, object]:
    """What kernels are scheduled and compiled for: as the file names it, so that none is used for another. Kernels are
    tuned for one thread, whatever number shares their loops."""
    machine = {name: value for name, value in asdict(target.machine).items() if name != "threads"}
    return {"triple": target.triple, "cpu": target.cpu, "features": list(target.features), **machine}


def empty(target: Target, seed: int = 0) -> Database:
    """Nothing tuned."""
    return Database(target.name, device_of(target), "not tuned", seed=seed)


def write_database(database: Database, path: Path) -> None:
    """Writes tuning.json, sorted by fingerprint. Raises OutputError."""
    kernels = sorted((asdict(each) for each in database.kernels), key=lambda each: each["fingerprint"])
    data = {"format": database.format, **asdict(database), "kernels": kernels}
    write_text(path, json_lines(data))


def read_database(path: Path, target: Target) -> Database:
    """Reads tuning.json back. Raises ConfigError where it is malformed, or of another format, TVM or target."""
    text = read_text(path, _AGAIN)
    where = str(path)
    known = decode(dict, text, where, _AGAIN)
    expected: Mapping[str, object] = {
        "format": FORMAT,
        "tvm": importlib.metadata.version("apache-tvm"),
        "target": target.name,
        "device": device_of(target),
    }
    for key, value in expected.items():
        if key not in known:
            raise ConfigError(f"'{where}': {key} is missing.", _AGAIN)
        if known[key] != value:
            raise ConfigError(f"'{where}': is for the {key} {_said(known[key])}, not {_said(value)}.", _AGAIN)
    found = decode(Database, text, where, _AGAIN)
    if len({each.fingerprint for each in found.kernels}) != len(found.kernels):
        raise ConfigError(f"'{where}': a kernel is there twice.", _AGAIN)
    try:
        _ = found.adopted
    except SequenceError as error:
        raise ConfigError(f"'{where}': {error.what}", _AGAIN) from error
    return found


def read_tuning(path: Path, target: Target) -> AdoptedTuning:
    """Read the adopted part of tuning.json. Errors: see `read_database`, `Database.layout_pass`."""
    found = read_database(path, target).adopted
    return replace(found, digest=hashlib.sha256(path.read_bytes()).hexdigest())


def _said(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
