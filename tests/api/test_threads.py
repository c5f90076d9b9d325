"""Test models compiled for threads: outputs of one thread's library, bit for bit, in the predicted memory."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from passfit import api
from passfit.codegen.build_library import build_library
from passfit.kernels.rules import parallel_loops as parallel
from passfit.memory.validation.checked_plan import checked_plan
from passfit.passes.sequence.catalogue import parse_spec
from passfit.passes.sequence.replay import replay
from passfit.passes.sequence.sequence import Sequence
from passfit.targets import Target, get_target, how_to_run
from passfit.verify.runner import link

from ..results import reproducible
from .test_splitting import stack

pytestmark = pytest.mark.slow

HOST = get_target("x86-64")
native = pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3")
DOWN = ("legalize", "fold-constant", "fuse-operators")
TAILS = (("order",), ("share", "order"), ("split-rows{steps=0-2}", "share", "order"))
FOREIGN = ("rpi4", "beaglebone", "visionfive2", "bpi-f3")
#: no lever and all levers natively; at night the others too, and all levers elsewhere: threads there are musl's, which zig builds in 50 s
LEVERS = (TAILS[0], pytest.param(TAILS[1], marks=pytest.mark.nightly), TAILS[2])
PLACES = [
    ("x86-64", TAILS[0]),
    pytest.param("x86-64", TAILS[1], marks=pytest.mark.nightly),
    ("x86-64", TAILS[2]),
    *(pytest.param(name, TAILS[-1], marks=pytest.mark.nightly) for name in FOREIGN),
]


@pytest.fixture(autouse=True, scope="module")
def _small_loops_are_worth_it():
    """Lower the least work for threads: a model of milliseconds stands for one of seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "MIN_WORK", 256)
        yield


def outputs(model: Path, target: Target, passes: tuple[str, ...], folder: Path) -> list[bytes]:
    imported = api.load(model)
    sequence = Sequence(tuple(map(parse_spec, passes)))
    lowered, workspace = replay(sequence, imported.graph, imported.onnx, imported.name, target.machine)
    folder.mkdir(parents=True)
    library = build_library(imported.name, lowered, checked_plan(lowered.program, target), workspace, target, folder)
    assert library.threads == target.threads
    linked = link(library, lowered.program, target, folder)
    if linked.runner.command is None:
        pytest.skip(linked.runner.how)
    x = np.random.default_rng(0).standard_normal((1, 3, 101, 67)).astype(np.float32)
    _, found = linked.run([{"x": x}, {"x": -x}])
    return [each["y"].tobytes() for each in found]


@pytest.mark.parametrize("name, tail", PLACES)
def test_the_outputs_are_those_of_one_thread(tmp_path: Path, name: str, tail: tuple[str, ...]):
    model = stack(tmp_path / "stack.onnx")
    one, *several = (
        outputs(model, get_target(name).with_threads(threads), (*DOWN, *tail), tmp_path / str(threads))
        for threads in (1, 2, 3)
    )
    assert one[0] != one[1]
    assert several == [one, one]


@native
@pytest.mark.parametrize("tail", LEVERS, ids=" ".join)
def test_measured_memory_is_what_was_predicted(tmp_path: Path, tail: tuple[str, ...]):
    model, sequence = stack(tmp_path / "stack.onnx"), tmp_path / "sequence.json"
    sequence.write_text(json.dumps({"passes": [*DOWN, *tail]}))
    found = {}
    for threads in (1, 2, 4):
        out = tmp_path / str(threads)
        report = api.compile_model(model, HOST.with_threads(threads), out=out, sequence=sequence)
        best, measured = report.best, report.measured
        assert measured.ran and measured.max_rel_error <= 1e-5
        assert abs(measured.ram - best.planned_ram) <= max(0.05 * best.planned_ram, 128 * 1024)
        assert best.ram == best.arena + best.workspace + best.stack
        manifest = json.loads((out / "manifest.json").read_text())
        assert manifest.get("threads", 1) == threads and ("link" in manifest) == (threads > 1)
        found[threads] = best
    # the workspace of one thread is in the arena, those of several are beside it
    assert found[1].arena >= found[2].arena == found[4].arena and found[1].workspace == 0
    assert found[1].ram + 16384 <= found[2].ram < found[4].ram and found[2].workspace < found[4].workspace


@native
def test_one_thread_gives_the_bytes_it_always_gave(tmp_path: Path):
    model, sequence = stack(tmp_path / "stack.onnx"), tmp_path / "sequence.json"
    sequence.write_text(json.dumps({"passes": [*DOWN, *TAILS[-1]]}))
    for name, target in (("default", HOST), ("one", HOST.with_threads(1))):
        api.compile_model(model, target, out=tmp_path / name, sequence=sequence)
    assert reproducible(tmp_path / "one") == reproducible(tmp_path / "default")
    assert b"pthread" not in (tmp_path / "one" / "libstack.a").read_bytes()


@native
def test_a_search_counts_the_threads(tmp_path: Path):
    model = stack(tmp_path / "stack.onnx")
    settings = api.SearchSettings(evaluations=8)
    predicted = api.optimize(model, HOST.with_threads(2), out=tmp_path / "found", search=settings)
    compiled = api.compile_model(
        model, HOST.with_threads(2), out=tmp_path / "built", sequence=tmp_path / "found" / "sequence.json"
    )
    assert predicted.best.ram == compiled.best.planned_ram
    assert predicted.best.workspace == compiled.best.workspace >= 16384
