"""Read params.yaml into typed, frozen objects; an unknown or malformed entry is an error naming its place.

The file is read as YAML 1.2 by the parser DVC itself uses, so that both see the same values.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BeforeValidator,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationError,
)

from ..errors import ConfigError, did_you_mean
from ..memory.footprint import Budget
from ..support.yaml_file import read_yaml
from ..targets.target import IndexChecks, Optimisation, Target
from .fields import Duration, Executor, Fixed, Fraction, Latency, Room, Section, Shape, Size, Slowdown, Table, Text
from .ports import InputForm, OutputForms

_Settings = TypeVar("_Settings", bound=Table)
MODEL_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")


#: words for keys that are not text, by the type a YAML parser gives them
_KINDS = {int: "a number", float: "a number", bool: "a truth value", type(None): "no value"}


def _data(value: object) -> object:
    """Read samples given by their source alone."""
    return {"source": value} if isinstance(value, str) else value


class BudgetParams(Table):
    """Budget, `budget: {ram: 1MiB, flash: 4MiB, regions: {dtcm: 64KiB}}`; None: no limit. Sizes are in bytes.

    `regions` are memories of a device without an operating system, by name: plans keep to them; 0 leaves one out.
    The gate alone reads `latency` (milliseconds of a run, `20ms`), `instructions` (of a run under an emulator) and `stack`.
    It reads limits of accuracy as well, on the samples of the model's `data`: the least value of its metric (the largest, of an
    error), the largest loss against the file given, and the least fraction of decisions that agree with it.
    """

    ram: Size | None = None
    flash: Size | None = None
    latency: Duration | None = None
    instructions: PositiveInt | None = None
    stack: Size | None = None
    accuracy: Annotated[float, Field(allow_inf_nan=False)] | None = None
    max_accuracy_loss: Fraction | None = Field(None, alias="max-accuracy-loss")
    min_agreement: Annotated[float, Field(ge=0, le=1)] | None = Field(None, alias="min-agreement")
    regions: Annotated[dict[str, Room | None], Section] = Field(default_factory=dict)


class AcceptedGrowth(Table):
    """Growth of a model that is meant: up to these sizes in bytes, for this reason. Any further growth is refused again.

    So is a loss of accuracy, down to this one (up to it, of an error).
    """

    ram: Size | None = None
    flash: Size | None = None
    accuracy: Annotated[float, Field(allow_inf_nan=False)] | None = None
    reason: Text


class DataParams(Table):
    """Samples of a model: an .npz, .npy, folder or `FILE.py:function`, and the metric over them.

    `metric` is a name of `data.metrics`, or `FILE.py:function`. `emulated` is the most samples that run under an emulator.
    `calibration` is other samples for quantisation; none: these.
    """

    source: Text
    metric: Text | None = None
    emulated: PositiveInt = 64
    calibration: Text | None = None


class QuantizeParams(Table):
    """Quantisation of a model by its samples: numbers, calibration, and the largest loss of its metric.

    `form` names what becomes integers or halves: layers and weights (`int8`), or weights alone. `io` is the form of inputs and outputs.
    """

    form: Literal["int8", "float16", "int8-weights", "int4-weights"] = "int8"
    method: Literal["minmax", "entropy", "percentile"] = "minmax"
    samples: PositiveInt = 128
    max_accuracy_loss: Fraction = Field(0.01, alias="max-accuracy-loss")
    io: Literal["float", "int8"] = "float"


class ModelParams(Table):
    """Model: its source, and the sizes that make its shapes static.

    `fix` freezes inputs to a value, `bounds` lower the most rows of results whose number the data decide. `outputs` are those to keep, in the file's order, as a list or a table of their forms; none: all.
    `inputs` are the forms of inputs, see `ports.py`; `io: int8` leaves the inputs and outputs of a quantised model as integers. `licence` names the licence
    of the model, as an SPDX expression where there is one. `data` are samples of it, a source alone or a table; `quantize` makes
    a quantised model of the file first; none: the file as given.
    """

    source: Text
    licence: Text | None = None
    shapes: Annotated[dict[str, Shape], Section] = Field(default_factory=dict)
    fix: Annotated[dict[str, Fixed], Section] = Field(default_factory=dict)
    bounds: Annotated[dict[str, PositiveInt], Section] = Field(default_factory=dict)
    inputs: Annotated[dict[str, InputForm], Section] = Field(default_factory=dict)
    outputs: OutputForms = ()
    io: Literal["float", "int8"] | None = None
    data: Annotated[DataParams, BeforeValidator(_data)] | None = None
    quantize: Annotated[QuantizeParams, Section] | None = None


class TuneParams(Table):
    """Time to look for faster schedules, in seconds of wall time per model × target; 0: none."""

    seconds: Annotated[NonNegativeFloat, Field(allow_inf_nan=False)] = 0.0
    seed: NonNegativeInt = 0


class TargetParams(Table):
    """Target: its budget, budgets for single models, which win over it, and the choices of its libraries.

    `threads` run a library. `opt` weighs the size of its code against its speed; None is the device's own. `index-checks` answers indices out of
    range and other values that operators forbid: a run fails, clamps them, or does not look. `accepted-growth` is by model.
    `together` tells whether one device holds all models, so that their sum must fit too. `tune` wins over that of all targets.
    """

    budget: Annotated[BudgetParams, Section] = BudgetParams()
    budgets: Annotated[dict[str, Annotated[BudgetParams, Section]], Section] = Field(default_factory=dict)
    threads: PositiveInt = 1
    opt: Optimisation | None = None
    index_checks: IndexChecks = Field("fail", alias="index-checks")
    accepted_growth: Annotated[dict[str, AcceptedGrowth], Section] = Field(
        default_factory=dict, alias="accepted-growth"
    )
    together: bool = True
    tune: Annotated[TuneParams, Section] = TuneParams()

    def apply(self, target: Target, model: str = "") -> Target:
        """Return `target` with these choices, for a model. Raises ConfigError for threads or memories it lacks."""
        rooms = self.budget.regions | self.budgets.get(model, BudgetParams()).regions
        known = {name: nbytes for name, nbytes in rooms.items() if nbytes is not None}
        return (
            target.with_threads(self.threads).with_opt(self.opt).with_index_checks(self.index_checks).with_rooms(known)
        )


class SearchParams(Table):
    """Search settings: strategy, limits and stop rule.

    `seconds` of processor time limit the effort for one model × target; null: 240, two minutes of two cores. `workers` is the number of processes; null: every core, 0: none but
    its own. Results do not depend on it.

    `evaluations` limits the states looked at; null: as many as the size of the graph allows.
    `objective` is minimised: time within the budget, ram or flash; null: time where there is a budget, else ram.
    `until` stops at the first sequence that fits, or at the minimum. `lossy` admits passes that are not exact;
    `max_error` is then allowed, relative to the range of an output. `knowledge` is a file of `passfit learn`.
    `max-extra-compute` limits the additional arithmetic for less ram, as a fraction; null leaves kernels whole.
    `max-slowdown` limits the predicted time of the least ram, relative to the fastest plan of whole kernels; null: none.
    `max-latency` limits a run instead: `20ms`, or `1.5x` of the time of tvm-default's whole kernels.
    """

    strategy: Text = "orchestrated"
    evaluations: PositiveInt | None = None
    seconds: Annotated[PositiveFloat, Field(allow_inf_nan=False)] | None = None
    seed: NonNegativeInt = 0
    objective: Literal["fastest-within-budget", "ram", "flash"] | None = None
    until: Literal["minimum", "fits"] = "minimum"
    lossy: bool = False
    max_error: PositiveFloat = 0.01
    max_extra_compute: Fraction | None = Field(0.25, alias="max-extra-compute")
    max_slowdown: Slowdown | None = Field(1.25, alias="max-slowdown")
    max_latency: Latency | None = Field(None, alias="max-latency")
    knowledge: Text | None = None
    workers: NonNegativeInt | None = None


class ProfileParams(Table):
    """Measurements for the report alone: whether to time the kernels of each library that this machine runs."""

    kernels: bool = False


class VerifyParams(Table):
    """Settings of the comparison with ONNX Runtime.

    `tolerance` is relative to the range of an output.
    """

    seed: NonNegativeInt = 0
    cases: PositiveInt = 3
    tolerance: PositiveFloat = 1e-4


class TrackParams(Table):
    """MLflow experiment that records the runs."""

    experiment: Text = "passfit"


class Params(Table):
    """Content of params.yaml that is passfit's; other sections are of the repo's own stages.

    `boards` are devices of the repo's own, which `targets.catalogue` reads. `executor` has the stage `cells` compute all
    cells: `local`, on every core, `local:N` in N processes, or `dask://HOST:PORT` on a cluster. Results do not depend on it.
    """

    models: Annotated[dict[str, ModelParams], Section] = Field(default_factory=dict)
    targets: Annotated[dict[str, Annotated[TargetParams, Section]], Section] = Field(default_factory=dict)
    boards: Annotated[dict[str, dict[str, Any]], Section] = Field(default_factory=dict)
    executor: Executor = None
    search: Annotated[SearchParams, Section] = SearchParams()
    tune: Annotated[TuneParams, Section] = TuneParams()
    profile: Annotated[ProfileParams, Section] = ProfileParams()
    verify: Annotated[VerifyParams, Section] = VerifyParams()
    track: Annotated[TrackParams, Section] = TrackParams()

    def budget(self, model: str, target: str) -> Budget:
        """Return the budget of `model` on `target`, as searches read it: see `limits`."""
        limits = self.limits(model, target)
        return Budget(limits.ram, limits.flash)

    def limits(self, model: str, target: str) -> BudgetParams:
        """Return all limits of `model` on `target` except of regions, which `TargetParams.apply` merges.

        `budgets` wins over `budget`, quantity by quantity; null there lifts a limit.
        """
        own = self.targets[target].budgets.get(model, BudgetParams())
        return _merge(self.targets[target].budget, own, own.model_fields_set - {"regions"})

    def tuning(self, target: str) -> TuneParams:
        """Return the settings of a tuning on `target`: its own win, one by one."""
        own = self.targets[target].tune
        return _merge(self.tune, own, own.model_fields_set)


def _merge(common: _Settings, own: _Settings, given: Iterable[str]) -> _Settings:
    """Merge the given settings of a target over the common ones."""
    return common.model_copy(update={name: getattr(own, name) for name in given})


#: sections of params.yaml that passfit reads
SECTIONS = tuple(Params.model_fields)


def load_params(path: Path) -> Params:
    """Read and check params.yaml.

    Sections that are not passfit's are left to the repo's own stages. Raises ConfigError for a missing or unreadable file,
    malformed YAML (with its line), a key given twice, an unknown key in a section, a malformed value (each with its path), a model name that cannot be a file name, and a budget or accepted growth
    for a model that is not declared.
    """
    return params_of(read_yaml(path), path)


def params_of(data: object, path: Path) -> Params:
    """Check the content of params.yaml as `load_params` does; `path` is for the messages."""
    if data is None:
        data = {}
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: not a table of settings.", "Write `models:` and `targets:` in it.")
    try:
        params = Params.model_validate(_own_sections(data, path))
    except ValidationError as error:
        raise _explain(path, error) from None
    _check_names(path, params)
    return params


def _own_sections(data: dict[Any, Any], path: Path) -> dict[str, Any]:
    """Return the sections that are passfit's. Raises ConfigError for one that is nearly called like one that is missing."""
    missing = [name for name in SECTIONS if name not in data]
    for key in data:
        if key not in SECTIONS and (near := difflib.get_close_matches(str(key), missing, n=1, cutoff=0.75)):
            raise ConfigError(
                f"{path}: {key} is unknown.",
                f"Did you mean '{near[0]}'? If it is yours, add an empty section `{near[0]}: {{}}`.",
            )
    return {key: value for key, value in data.items() if key in SECTIONS}


def declared(params: Params) -> list[tuple[str, str]]:
    """Return every pair of a model and a target in params.yaml."""
    return [(model, target) for model in params.models for target in params.targets]


def check_targets(params: Params, known_names: Iterable[str]) -> None:
    """Check that the catalogue knows every target of `params`. Raises ConfigError."""
    known = list(known_names)
    for name in params.targets:
        if name not in known:
            raise ConfigError(f"params.yaml: targets.{name}: there is no such target.", did_you_mean(name, known))


def _check_names(path: Path, params: Params) -> None:
    for model in params.models:
        if not MODEL_NAME.fullmatch(model):
            raise ConfigError(
                f"{path}: models.{model}: a model name is a file and C name.", "Use a-z, 0-9 and '-', no '-' in front."
            )
    for target, limits in params.targets.items():
        for section, named in (("budgets", limits.budgets), ("accepted-growth", limits.accepted_growth)):
            for model in named:
                if model not in params.models:
                    raise ConfigError(
                        f"{path}: targets.{target}.{section}.{model}: there is no such model.",
                        did_you_mean(model, params.models),
                    )


def _explain(path: Path, error: ValidationError) -> ConfigError:
    """Explain the first problem pydantic found, in our words."""
    problem = error.errors()[0]
    # pydantic puts the key of a table in twice when the key itself is wrong: `models, 1, [key]`
    place = [str(part) for part in problem["loc"] if part not in ("[key]", "[list]", "[table]")]
    context = problem.get("ctx", {})
    if problem["type"] == "unknown_key":
        return ConfigError(f"{path}: {'.'.join([*place, context['key']])} is unknown.", context["hint"])
    where = f"{path}: {'.'.join(place)}"
    if "[key]" in problem["loc"]:
        kind = _KINDS.get(type(problem["input"]), "no text")
        return ConfigError(
            f"{path}: {'.'.join(place[:-1])}: YAML reads a name there as {kind}, not as text: {place[-1]}.",
            'Write it in quotes, such as "1e5" or "null".',
        )
    if problem["type"] == "missing":
        return ConfigError(f"{where} is missing.", "Add it.")
    if problem["type"] == "params":
        return ConfigError(f"{where}: {context['message']}")
    message = re.sub(r"valid dictionary.*", "table of settings", problem["msg"].replace("Input should", "should", 1))
    return ConfigError(f"{where} {message}, not {problem['input']!r}.")
