"""Ordered list of passes from the imported graph to the compiled program, and its file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ...errors import SequenceError
from ...support.text_files import decode, json_lines, read_text, write_text
from ..base import Level, Pass
from .catalogue import CATALOGUE_VERSION, parse_spec

#: default pipeline of `tvm.relax.backend.cpu_generic`
TVM_DEFAULT = ("legalize", "fold-constant", "fuse-operators")
#: passes that run a kernel in parts, or again: without them kernels are whole
SPLITTING = frozenset({"cut-sums", "rematerialise", "split-channels", "split-rows"})
_AGAIN = "If another version of passfit wrote the file, search again: leave --sequence out, or run the optimize stage."


@dataclass(frozen=True)
class Sequence:
    """Passes by non-decreasing level. Replaying them gives the same bytes."""

    passes: tuple[Pass, ...]

    @classmethod
    def parse(cls, specs: Iterable[str]) -> Sequence:
        """Parse pass specs. Raises SequenceError for an unknown pass, or one out of its level."""
        passes = tuple(parse_spec(spec) for spec in specs)
        level = Level.GRAPH
        for each in passes:
            if level >= Level.KERNELS:  # lowering and scheduling happen on demand, before the pass that needs them
                level = min((possible for possible in each.levels if possible >= level), default=level)
            if level not in each.levels:
                wanted = " or ".join(sorted(known.name.lower() for known in each.levels))
                raise SequenceError(
                    f"The pass '{each.spec}' works on the {wanted} level, "
                    f"but stands at the {level.name.lower()} level.",
                    "Put passes on the graph before `legalize`, passes on kernels after it, then splits, then `share`.",
                )
            level = each.level_after(level)
        if level == Level.GRAPH:
            raise SequenceError("The sequence has no `legalize`, so it yields no kernels.", "Add `legalize`.")
        return cls(passes)

    @property
    def specs(self) -> tuple[str, ...]:
        return specs_of(self.passes)

    def around_layout(self) -> tuple[tuple[Pass, ...], tuple[Pass, ...]]:
        """Split the passes at the place of a `layout`: after all lowered passes, before scheduling."""
        place = max(n for n, each in enumerate(self.passes) if max(each.levels) <= Level.LOWERED) + 1
        return self.passes[:place], self.passes[place:]

    @property
    def whole(self) -> bool:
        """Return whether every kernel runs once, and in one piece."""
        return not any(each.name in SPLITTING for each in self.passes)

    @property
    def lossy(self) -> bool:
        return any(each.lossy for each in self.passes)


def specs_of(passes: Iterable[Pass]) -> tuple[str, ...]:
    """Return the spec of each pass, in order."""
    return tuple(each.spec for each in passes)


def write_sequence(sequence: Sequence, path: Path) -> None:
    """Write sequence.json. Raises OutputError."""
    data = {"passes": list(sequence.specs), "exact": not sequence.lossy, "catalogue": CATALOGUE_VERSION}
    write_text(path, json_lines(data))


def read_sequence(path: Path) -> Sequence:
    """Read sequence.json. Raises ConfigError for a malformed file, SequenceError for an invalid sequence."""
    hint = "Run `passfit optimize` to write it again."
    data = decode(dict, read_text(path, hint), str(path), hint)
    passes = data.get("passes")
    if not isinstance(passes, list) or not all(isinstance(spec, str) for spec in passes):
        raise SequenceError(f"'{path}': passes is not a list of pass specs.", hint)
    try:
        return Sequence.parse(passes)
    except SequenceError as error:
        raise SequenceError(f"'{path}': {error.what}", f"{error.hint} {_AGAIN}") from error
