"""Run a program of ONNX Runtime's on compiled libraries, by one changed import.

    import passfit.runtime as onnxruntime          # was: import onnxruntime

A session compiles its model for this machine, without search, when the shapes of its inputs are known, or opens the result of
`passfit compile`. Names are those of onnxruntime's Python API; settings of its execution have no effect here.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from .errors import ModelError, did_you_mean

if TYPE_CHECKING:
    import onnx

    from .backend.built import ArrayPort

#: version of onnxruntime whose names these are
__version__ = version("onnxruntime")
_PROVIDER = "CPUExecutionProvider"


class NodeArg(NamedTuple):
    """Input or output of a session: `type` as in `tensor(float)`; `shape` holds a name, or None, for an open size.

    It is empty, too, for one that is not `ranked`.
    """

    name: str
    type: str
    shape: list[int | str | None]
    ranked: bool = True


class GraphOptimizationLevel(IntEnum):
    """Levels of onnxruntime's optimiser, accepted without effect."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_ALL = 99


class ExecutionMode(IntEnum):
    """Modes of onnxruntime's executor, accepted without effect."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class SessionOptions(SimpleNamespace):
    """Attributes of a session's options, kept and without effect."""

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keep an entry under its key."""
        setattr(self, key, value)


class RunOptions(SimpleNamespace):
    """Attributes of a run's options, kept and without effect."""


class _Runnable(Protocol):
    inputs: list[NodeArg]
    outputs: list[NodeArg]
    metadata: SimpleNamespace

    def run(self, values: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Return all outputs by name."""


class InferenceSession:
    """Session on a model: the path or the bytes of an ONNX file, or the folder of a compiled library.

    A file is compiled once for each set of input shapes. Raises ModelError for a model that cannot be read, or is refused.
    """

    def __init__(
        self,
        path_or_bytes: str | bytes | PathLike[str],
        sess_options: SessionOptions | None = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Any] | None = None,
        **_: Any,
    ):
        self._options = sess_options or SessionOptions()
        self._of: _Runnable
        if isinstance(path_or_bytes, bytes) or not Path(path_or_bytes).is_dir():
            self._of = _Model(path_or_bytes)
        else:
            self._of = _Library(Path(path_or_bytes))

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: RunOptions | None = None
    ) -> list[np.ndarray]:
        """Return the named outputs, or all, in order.

        Raises ModelError for another name, a missing input, or one of another form, NumericError if the library fails.
        """
        known = [each.name for each in self._of.outputs]
        for name in output_names or ():
            if name not in known:
                raise ModelError(f"The model has no output '{name}'.", did_you_mean(name, known))
        names = [each.name for each in self._of.inputs]
        missing = [name for name in names if name not in input_feed]
        unknown = [name for name in input_feed if name not in names]
        if missing or unknown:
            what = f"misses {', '.join(missing)}" if missing else f"has no input '{unknown[0]}'"
            raise ModelError(f"The model {what}.", f"Its inputs are {', '.join(names)}.")
        results = self._of.run({each.name: _value(each, input_feed[each.name]) for each in self._of.inputs})
        return [results[name] for name in output_names or known]

    def get_inputs(self) -> list[NodeArg]:
        """Return the inputs, in order."""
        return list(self._of.inputs)

    def get_outputs(self) -> list[NodeArg]:
        """Return the outputs, in order."""
        return list(self._of.outputs)

    def get_modelmeta(self) -> SimpleNamespace:
        """Return the model's metadata under onnxruntime's names."""
        return self._of.metadata

    def get_session_options(self) -> SessionOptions:
        """Return the options that the session was given."""
        return self._options

    def get_providers(self) -> list[str]:
        """Return the name that onnxruntime gives to this machine's processor."""
        return get_available_providers()

    def set_providers(self, providers: Iterable[Any], provider_options: Iterable[Any] | None = None) -> None:
        """Accept any providers, without effect."""


class _Model:
    """Model of a file, compiled by `passfit.backend`."""

    def __init__(self, source: str | bytes | PathLike[str]):
        from .backend.adapter import PreparedModel
        from .frontend.canonical.clean_names import free_inputs
        from .frontend.canonical.read_onnx import read_model

        if isinstance(source, bytes):
            with tempfile.TemporaryDirectory(prefix="passfit-") as folder:
                (file := Path(folder) / "bytes").write_bytes(source)
                model = read_model(file)
        else:
            model = read_model(Path(source))
        self.inputs = [_node_arg(value) for value in free_inputs(model)]
        self.outputs = [_node_arg(value) for value in model.graph.output]
        self.metadata = _metadata(model)
        self._prepared = PreparedModel(model, data_vary=True)

    def run(self, values: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Return all outputs by name; the first run for new shapes compiles."""
        return dict(zip([each.name for each in self.outputs], self._prepared.run(values), strict=True))


class _Library:
    """Library in the folder of a result."""

    def __init__(self, folder: Path):
        from .notebook import RunnableLibrary

        self._library = library = RunnableLibrary(folder)
        self.inputs, self.outputs = (
            [
                NodeArg(port.name, f"tensor({_WORDS.get(port.dtype, port.dtype)})", _sizes(port))
                for port in ports
                if port.name not in {each.length for each in ports}
            ]
            for ports in (library.inputs, library.outputs)
        )
        self.metadata = SimpleNamespace(graph_name=library.report.model, custom_metadata_map={})

    def run(self, values: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Return all outputs by name."""
        return self._library.run_all([values])[0]


def _sizes(port: ArrayPort) -> list[int | str | None]:
    """Return the sizes of a port, None along the axis whose length the data decide."""
    return [None if port.length and axis == port.axis else size for axis, size in enumerate(port.shape)]


#: dtypes whose names differ in onnxruntime
_WORDS = {"float32": "float", "float64": "double"}


def _value(port: NodeArg, given: Any) -> np.ndarray:
    """Return the value of an input; lists take its dtype. Raises ModelError for another dtype, rank or size."""
    word = port.type[len("tensor(") : -1]
    dtype = {word: name for name, word in _WORDS.items()}.get(word, word)
    value = given if isinstance(given, np.ndarray) or dtype not in np.sctypeDict else np.array(given, dtype)
    sizes = [size if isinstance(size, int) else None for size in port.shape]
    fits = len(sizes) == value.ndim and all(size in (None, own) for size, own in zip(sizes, value.shape))
    if value.dtype.name != dtype or not (fits or not port.ranked):
        shape = ", ".join("?" if size is None else str(size) for size in sizes)
        raise ModelError(
            f"The input '{port.name}' is {value.dtype}{list(value.shape)}; the model takes {dtype}[{shape}].",
            "Convert it, or reshape it.",
        )
    return value


def _node_arg(value: onnx.ValueInfoProto) -> NodeArg:
    import onnx

    tensor = value.type.tensor_type
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).name
    sizes: list[int | str | None] = [
        dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None for dim in tensor.shape.dim
    ]
    return NodeArg(value.name, f"tensor({_WORDS.get(dtype, dtype)})", sizes, tensor.HasField("shape"))


def _metadata(model: onnx.ModelProto) -> SimpleNamespace:
    return SimpleNamespace(
        custom_metadata_map={entry.key: entry.value for entry in model.metadata_props},
        description=model.doc_string,
        domain=model.domain,
        graph_name=model.graph.name,
        producer_name=model.producer_name,
        version=model.model_version,
    )


def get_available_providers() -> list[str]:
    """Return the name that onnxruntime gives to this machine's processor."""
    return [_PROVIDER]


def get_device() -> str:
    """Return `CPU`."""
    return "CPU"


def set_default_logger_severity(severity: int) -> None:
    """Accept a level of onnxruntime's log, without effect."""
