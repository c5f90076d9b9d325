"""Knowledge file: records of models, versioned and sorted; same records, same bytes.

knowledge.json of the package  +  the file of a model repo  ──►  Knowledge
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from ...errors import ConfigError, SequenceError
from ...passes.sequence.catalogue import CATALOGUE_VERSION
from ...passes.sequence.sequence import Sequence
from ...support.text_files import decode, json_lines, read_text, write_text
from .record import ModelRecord, first_problem

SHIPPED = Path(__file__).with_name("knowledge.json")

#: raised when the shape of the file or the meaning of a field changes (the features, for one)
SCHEMA = 1

_HINT = "Remove it and run `passfit learn` again."


@dataclass(frozen=True)
class _Versions:
    schema: int
    catalogue: str


@dataclass(frozen=True)
class _File(_Versions):
    models: tuple[ModelRecord, ...]


def merge(older: Iterable[ModelRecord], newer: Iterable[ModelRecord]) -> tuple[ModelRecord, ...]:
    """Merge records by key, keeping the newer of two; sorted by name and key."""
    records = {record.key: record for record in (*older, *newer)}
    return tuple(sorted(records.values(), key=lambda record: (record.model, record.key)))


def read_records(path: Path) -> tuple[ModelRecord, ...]:
    """Read the records of a knowledge file.

    Raises ConfigError if it cannot be read, is malformed, or was learnt with another catalogue of passes, as their
    effects may differ.
    """
    text = read_text(path, "Run `passfit learn` to make it.")
    versions = decode(_Versions, text, str(path), _HINT)
    if (versions.schema, versions.catalogue) != (SCHEMA, CATALOGUE_VERSION):
        raise ConfigError(
            f"'{path}' was learnt with catalogue {versions.catalogue} (schema {versions.schema}), "
            f"not {CATALOGUE_VERSION} (schema {SCHEMA}).",
            _HINT,
        )
    records = decode(_File, text, str(path), _HINT).models
    for record in records:
        problem = first_problem(record) or _unknown_spec(record)
        if problem is not None:
            raise ConfigError(f"'{path}': the record of '{record.model}' is broken: {problem}.", _HINT)
    return records


def _unknown_spec(record: ModelRecord) -> str | None:
    """Describe the first invalid pass of a record: edges are graph passes, tails end in kernels."""
    specs = dict.fromkeys((*(spec for state in record.states for spec in state.edges), *record.passes))
    refined = [] if record.refined is None else [(*record.refined.prefix, *record.refined.tail)]
    try:
        for sequence in (*record.tails, *((spec, *record.tails[0]) for spec in specs), *refined):
            Sequence.parse(sequence)
    except SequenceError as error:
        return error.what.rstrip(".")
    return None


def write_records(records: Iterable[ModelRecord], path: Path) -> None:
    """Write a knowledge file. Raises OutputError."""
    models = [asdict(record) for record in merge((), records)]
    write_text(path, json_lines({"schema": SCHEMA, "catalogue": CATALOGUE_VERSION, "models": models}))
