"""Which library folds constants best? Every candidate on every model of models.toml, as a Markdown table.

    python benchmarks/folding.py [MODEL …]

Columns: nodes left, size of the result / size of the model, largest difference from the unfolded model under ONNX
Runtime / largest value, seconds, whether two runs give the same bytes, and nodes of other domains than ONNX's own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import tomli

from passfit.frontend.canonical.bind_shapes import bind_inputs
from passfit.frontend.canonical.fold_constants import fold
from passfit.frontend.canonical.read_onnx import all_nodes, read_model
from passfit.frontend.canonical.shapes import infer_shapes
from passfit.frontend.source.source import resolve_source

Fold = Callable[[onnx.ModelProto], onnx.ModelProto]


@dataclass(frozen=True)
class Entry:
    """One model of models.toml."""

    name: str
    source: str
    recurrent: bool
    shapes: dict[str, list[int]]
    fix: dict[str, object]


def entries(path: Path = Path(__file__).with_name("models.toml")) -> list[Entry]:
    """All models of models.toml, in order."""
    listed = tomli.loads(path.read_text())["model"]
    return [Entry(e["name"], e["source"], e["recurrent"], e.get("shapes", {}), e.get("fix", {})) for e in listed]


def by_onnxruntime(model: onnx.ModelProto) -> onnx.ModelProto:
    with tempfile.TemporaryDirectory() as folder:
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = str(Path(folder) / "folded.onnx")
        options.log_severity_level = 4
        ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return onnx.load(options.optimized_model_filepath)


def by_onnxscript(model: onnx.ModelProto) -> onnx.ModelProto:
    from onnxscript import optimizer

    return optimizer.optimize(model, num_iterations=8)


def by_onnxslim(model: onnx.ModelProto) -> onnx.ModelProto:
    import onnxslim

    return onnxslim.slim(model)


def by_onnxsim(model: onnx.ModelProto) -> onnx.ModelProto:
    import onnxsim

    return onnxsim.simplify(model)[0]


CANDIDATES: dict[str, Fold] = {
    "onnxruntime basic": by_onnxruntime,
    "onnxscript defaults": by_onnxscript,
    "onnxscript as used": fold,
    "onnxslim": by_onnxslim,
    "onnxsim": by_onnxsim,
}


def run(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    """ONNX Runtime's results, nothing optimised."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {each.name: inputs[each.name] for each in session.get_inputs()})


def seeded(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Normally distributed inputs, the same at every run."""
    rng = np.random.default_rng(0)
    inputs = {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        shape = [dim.dim_value for dim in tensor.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        inputs[value.name] = rng.standard_normal(shape).astype(dtype)
    return inputs


def bound(entry: Entry) -> onnx.ModelProto:
    """The model with static inputs, and with inferred shapes where inference gets through."""
    model = read_model(resolve_source(entry.source))
    bind_inputs(model, entry.shapes, entry.fix)
    return infer_shapes(model)


def difference(results: list[np.ndarray], reference: list[np.ndarray]) -> float:
    """Largest absolute difference ÷ largest absolute value, over all outputs."""
    ratios = [0.0]
    for result, expected in zip(results, reference):
        gap = np.abs(result.astype(np.float64) - expected.astype(np.float64))
        ratios.append(float(gap.max() / max(np.abs(expected).max(), 1e-12)))
    return max(ratios)


def measure(entry: Entry, candidate: Fold) -> str:
    """The columns of one candidate on one model."""
    model = bound(entry)
    inputs = seeded(model)
    start = time.perf_counter()
    folded = candidate(_copy(model))
    seconds = time.perf_counter() - start
    again = candidate(_copy(model))
    gap = difference(run(folded, inputs), run(model, inputs))
    same = folded.SerializeToString(deterministic=True) == again.SerializeToString(deterministic=True)
    domains = sorted({node.domain for node in all_nodes(folded.graph)} - {"", "ai.onnx"})
    return (
        f"{len(list(all_nodes(model.graph)))} | {len(list(all_nodes(folded.graph)))} | "
        f"{folded.ByteSize() / model.ByteSize():.3f} | {gap:.1e} | {seconds:.2f} | {'yes' if same else 'no'} | "
        f"{', '.join(domains) or '-'}"
    )


def _child(entry: Entry, candidate: Fold, pipe: Connection) -> None:
    try:
        pipe.send(measure(entry, candidate))
    except Exception as error:  # whatever a candidate raises is its result
        pipe.send(f"failed: {type(error).__name__}: {(str(error).splitlines() or [''])[0][:90]} | | | | | |")


def apart(entry: Entry, candidate: Fold) -> str:
    """`measure` in a process of its own: a candidate that crashes ends that process only."""
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(entry, candidate, send))
    process.start()
    send.close()
    try:
        return receive.recv()
    except EOFError:
        process.join()
        return f"crashed with exit code {process.exitcode} | | | | | |"
    finally:
        process.join()


def _copy(model: onnx.ModelProto) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help="names from models.toml; all if none")
    wanted = parser.parse_args().models
    print("| model | library | nodes | nodes left | size | error | seconds | same bytes | other domains |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for entry in entries():
        if not wanted or entry.name in wanted:
            for name, candidate in CANDIDATES.items():
                print(f"| {entry.name} | {name} | {apart(entry, candidate)} |", flush=True)


if __name__ == "__main__":
    main()
