"""The models that benchmarks of passfit work on: those of models.toml, then those of the zoo."""

from __future__ import annotations

import argparse
import math
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import tomli
from zoo import BUILDERS, build

from passfit import api
from passfit.errors import PassfitError
from passfit.frontend.source.cache import default_cache

HERE = Path(__file__).parent


@dataclass(frozen=True, eq=False)
class Entry:
    """A model: of the zoo where there is no source. Told from others by identity."""

    name: str
    source: str | None = None
    recurrent: bool = False
    shapes: dict | None = None
    fix: dict | None = None

    def fetched(self) -> str:
        """Its source, after it was built where it is of the zoo."""
        return self.source or str(build(self.name, default_cache().parent / "zoo"))

    def load(self, source: str) -> api.ImportedModel:
        return api.load(source, self.name, self.shapes, self.fix)


def entries() -> list[Entry]:
    listed = tomli.loads((HERE / "models.toml").read_text(encoding="utf-8"))["model"]
    return [Entry(**each) for each in listed] + [Entry(name) for name in BUILDERS]


def alone(work: Callable[..., None], *arguments: object) -> str | None:
    """`work` in a process of its own, whose memory is given back; what went wrong where it did not end well."""
    child = multiprocessing.get_context("spawn").Process(target=work, args=arguments)
    child.start()
    child.join()
    return f"the process ended with exit code {child.exitcode}" if child.exitcode else None


def attempted(work: Callable[[], dict]) -> dict:
    """What `work` finds; what goes wrong is a result, too."""
    try:
        return work()
    except (PassfitError, RuntimeError) as error:
        return {"failed": f"{type(error).__name__}: {error}"}


def missing(summary: str, results: Path) -> Iterator[tuple[Entry, Path]]:
    """The command line of a benchmark with a file for each model in the folder `results`: the models that are asked for
    and have no file yet, or are to be measured again, each with its file."""
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("--model", action="append", help="only this one; repeatable")
    parser.add_argument("--again", action="store_true", help="forget earlier results")
    arguments = parser.parse_args()
    results.mkdir(parents=True, exist_ok=True)
    for entry in entries():
        file = results / f"{entry.name}.json"
        if (not arguments.model or entry.name in arguments.model) and (arguments.again or not file.exists()):
            yield entry, file


def geometric_mean(ratios: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))
