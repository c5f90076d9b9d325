"""Demo models as libraries of this machine, tracked, served by MLflow, and asked over HTTP: one by day, all at night."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from passfit.frontend.source.source import is_package
from passfit.params.params import load_params
from passfit.targets import native_target

from ..servers import Servers, ask

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
#: those from packages; a stage of the demo makes the others
DEMO = {name: model for name, model in load_params(ROOT / "params.yaml").models.items() if is_package(model.source)}
TARGET = native_target()
#: the one of less code
DAILY = ["wake-word"]


@pytest.fixture(scope="module", params=[DAILY, pytest.param([*DEMO], marks=pytest.mark.nightly)], ids=["day", "night"])
def models(request) -> list[str]:
    """The names of the models."""
    return request.param


@pytest.fixture(scope="module")
def compiled(models, tmp_path_factory, make_repo):
    """A repo with the models compiled. A search is not what is tested: the sequence is TVM's own."""
    from passfit.passes.sequence.catalogue import CATALOGUE_VERSION
    from passfit.passes.sequence.sequence import TVM_DEFAULT

    if TARGET is None:
        pytest.skip("no target of the catalogue runs natively on this machine")
    repo = make_repo(tmp_path_factory.mktemp("serving") / "repo")
    asked = {name: DEMO[name].model_dump(mode="json", exclude_defaults=True) for name in models}
    (repo.root / "params.yaml").write_text(json.dumps({"models": asked, "targets": {TARGET.name: {}}}))
    sequence = {"passes": list(TVM_DEFAULT), "exact": True, "catalogue": CATALOGUE_VERSION}
    (repo.root / "sequence.json").write_text(json.dumps(sequence))
    for name in models:
        model = DEMO[name]
        shapes = (f"--shape={port}={'x'.join(map(str, shape))}" for port, shape in model.shapes.items())
        out = f"out/compile/{name}/{TARGET.name}"
        repo.passfit(
            "compile", model.source, "--target", TARGET.name, *shapes, "--name", name, "--sequence", "sequence.json",
            "--out", out,
        )  # fmt: skip
    return repo


@pytest.fixture(scope="module")
def addresses(models, compiled, tmp_path_factory):
    said = compiled.passfit("track", "--register")
    assert "serve:" in said and "not registered" not in said, said
    servers = Servers(tmp_path_factory.mktemp("servers"))
    try:
        yield servers.serve(models, f"sqlite:///{compiled.root}/mlflow.db")
    finally:
        servers.stop()


def out(compiled, name: str) -> Path:
    return compiled.root / "out" / "compile" / name / TARGET.name


def test_the_models_have_kernels_of_several_objects(models, compiled):
    """Else serving them would not show that all of these are linked."""
    from passfit.codegen.elf import archive_members, read_object

    for name in models:
        (archive,) = out(compiled, name).glob("lib*.a")
        (kernels,) = [body for member, body in archive_members(archive.read_bytes()) if "_kernels" in member]
        assert len(read_object(kernels).functions()) > 1


def test_answers_over_http_are_those_of_onnx_runtime(models, compiled, addresses):
    for name in models:
        _assert_answers(compiled, addresses[name], name)


def _assert_answers(compiled, address: str, name: str) -> None:
    import numpy as np
    import onnxruntime

    from passfit.frontend.source.source import resolve_source

    io = json.loads((out(compiled, name) / "manifest.json").read_text())["io"]
    session = onnxruntime.InferenceSession(str(resolve_source(DEMO[name].source)), providers=["CPUExecutionProvider"])
    random = np.random.default_rng(0)
    cases = [
        {port["name"]: random.standard_normal(port["shape"]).astype(port["dtype"]) for port in io["inputs"]}
        for _ in range(4)
    ]
    expected = [session.run([port["name"] for port in io["outputs"]], case) for case in cases]
    with ThreadPoolExecutor(len(cases)) as clients:  # requests at once: the library has one arena
        requests = [{port: value.tolist() for port, value in case.items()} for case in cases]
        answers = list(clients.map(lambda inputs: ask(address, inputs), requests))
    for answer, values in zip(answers, expected, strict=True):
        assert list(answer) == [port["name"] for port in io["outputs"]]
        for found, value in zip(answer.values(), values, strict=True):
            assert np.shape(found) == value.shape
            assert np.abs(np.array(found) - value).max() <= 1e-4 * np.ptp(value)
