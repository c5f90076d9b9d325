"""Record the inputs of each result, for the gate to compare with the present ones.

    file, shapes, fix ─► canonical model ─► search ─► sequence ─► library
         origin.json                      search.json           manifest.json: `made_from`

Each record covers its own step only. If a step reproduces the same bytes, later results stay valid. DVC sees the same
records, so it reruns a step only if one of that step's inputs changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from ..errors import ConfigError
from ..frontend.source.import_options import ImportOptions
from ..frontend.source.provenance import Provenance, provenance
from ..memory.footprint import Budget
from ..params.params import ModelParams, Params
from ..search.settings import SearchSettings, aim_of, goal_of
from ..support.digests import OriginRecord, digest_of, json_values
from ..targets import Target
from ..verify.settings import VerifySettings

#: packages whose versions affect results
PACKAGES = ("passfit", "apache-tvm", "apache-tvm-ffi", "onnx", "onnxruntime", "ziglang")
#: facts of a target read by no step before the footprint: prose, capacities, which only a goal reads, and choices that
#: only the library and its run depend on
_UNREAD = ("description", "source", "ram", "flash", "index_checks", "runner")


def import_options(declared: ModelParams) -> ImportOptions:
    """Return the choices of an import that params.yaml declares for a model."""
    io = declared.io or (None if declared.quantize is None else declared.quantize.io)
    return ImportOptions(declared.shapes, declared.fix, declared.outputs, declared.inputs, io, declared.bounds)


def import_record(params: Params, model: str) -> OriginRecord:
    """Return the inputs of an import besides the model's files."""
    declared = params.models[model]
    return json_values({"source": declared.source, **import_options(declared).record()})


def search_settings(params: Params) -> SearchSettings:
    """Return the search settings of params.yaml."""
    knowledge = None if params.search.knowledge is None else Path(params.search.knowledge)
    return SearchSettings(**dict(params.search) | {"knowledge": knowledge})


def verify_settings(params: Params) -> VerifySettings:
    """Return the verification settings of params.yaml."""
    return VerifySettings(**params.verify.model_dump(), max_error=params.search.max_error)


def search_record(settings: SearchSettings, budget: Budget | None, target: Target, repo: Path = Path()) -> OriginRecord:
    """Return the inputs of a search besides the model.

    The number of workers is left out: it changes no result. Raises ConfigError for an unreadable knowledge file.
    """
    goal = goal_of(settings, budget, target)
    return json_values(
        {
            "strategy": settings.strategy,
            "evaluations": settings.evaluations,
            "seconds": None if settings.seconds is None else float(settings.seconds),
            "seed": settings.seed,
            "until": settings.until,
            "goal": None if goal is None else asdict(goal),
            "objective": settings.objective,
            "lossy": settings.lossy,
            "max-error": float(settings.max_error) if settings.lossy else None,
            "max-extra-compute": None if settings.max_extra_compute is None else float(settings.max_extra_compute),
            "max-slowdown": None if settings.max_slowdown is None else float(settings.max_slowdown),
            "max-latency": None if settings.max_latency is None else str(settings.max_latency),
            "knowledge": None if settings.knowledge is None else _knowledge(repo / settings.knowledge),
            "target": target_digest(target),
        }
    )


def search_inputs(settings: SearchSettings, budget: Budget | None, target: Target) -> OriginRecord:
    """Return all inputs of a search besides the model, for DVC: `search_record`, and the limits it counts within.

    A result made within other limits is no less valid, so results do not record them. Raises ConfigError as
    `search_record`.
    """
    aim = aim_of(settings, budget, target)
    return json_values({**search_record(settings, budget, target), "aim": None if aim is None else asdict(aim)})


def verify_record(settings: VerifySettings, lossy: bool, target: Target) -> OriginRecord:
    """Return the inputs of a compilation besides model, sequence and tuning."""
    return json_values(
        {
            "seed": settings.seed,
            "cases": settings.cases,
            "tolerance": float(settings.tolerance),
            "max-error": float(settings.max_error) if lossy else None,
            "target": target_digest(target),
            "index-checks": target.index_checks,
            **({"runner": list(target.runner)} if target.runner else {}),
            **({"data": settings.samples.digest} if settings.samples is not None else {}),
        }
    )


def evaluate_record(params: Params, model: str) -> OriginRecord:
    """Return the inputs of an evaluation on a model's samples besides these, the library and the file."""
    data = params.models[model].data
    asked = {} if data is None else data.model_dump(exclude={"calibration"})
    bound = {"max-error": float(params.search.max_error)} if params.search.lossy else {}
    return json_values({**asked, "tolerance": float(params.verify.tolerance), **bound})


def quantize_record(params: Params, model: str) -> OriginRecord:
    """Return the inputs of a quantisation besides the file and the samples."""
    declared = params.models[model]
    asked = {} if declared.quantize is None else declared.quantize.model_dump(by_alias=True)
    data = {} if declared.data is None else declared.data.model_dump(exclude={"emulated"})
    return json_values({**asked, "data": data})


def provenance_of(params: Params, model: str, sha256: str = "") -> Provenance:
    """Return the provenance of a model of params.yaml, whose files have that sha256."""
    declared = params.models[model]
    return provenance(declared.source, sha256, declared.licence)


def provenance_record(params: Params, model: str) -> OriginRecord:
    """Return the provenance of a model and its licence digest, for DVC: no result is stale for it."""
    found = provenance_of(params, model)
    return {**found.record, "text": hashlib.sha256(found.licence.text).hexdigest()}


#: the inputs of a tuning where nothing is tuned
UNTUNED: OriginRecord = {"seconds": 0.0, "seed": None}


def tune_record(params: Params, target: str) -> OriginRecord:
    """Return the inputs of a tuning on a target in params.yaml; without seconds, no seed."""
    asked = params.tuning(target)
    return json_values({"seconds": float(asked.seconds), "seed": asked.seed if asked.seconds else None})


def changes(recorded: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """Return the keys of `now` with another value than recorded, in order."""
    return [key for key, value in now.items() if key not in recorded or recorded[key] != value]


def target_digest(target: Target) -> str:
    """Return the sha256 of a target's facts read by kernels and libraries, threads included."""
    facts = {name: value for name, value in asdict(target).items() if name not in _UNREAD}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _knowledge(file: Path) -> str:
    try:
        return digest_of(file)
    except OSError as error:
        raise ConfigError(
            f"'{file}' cannot be read: {error.strerror}.",
            "Run `passfit learn` to make it, or remove search.knowledge from params.yaml.",
        ) from None
