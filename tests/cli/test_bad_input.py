"""Test bad usage: one clear sentence, exit code 2, and nothing half-written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import helper

from ..models import model_of

Refused = Callable[..., str]


@pytest.fixture
def cnn(save_tiny_cnn: Callable[..., Path], tmp_path: Path) -> Path:
    return save_tiny_cnn(tmp_path / "cnn.onnx")


def _save(path: Path, *nodes: onnx.NodeProto, shape: tuple[object, ...] = (2, 3), domain: str = "") -> Path:
    """A model that takes x and gives y."""
    onnx.save(model_of(nodes, {"x": shape}, ["y"], name="bad", domain=domain), path)
    return path


@pytest.mark.parametrize("command", ["optimize", "compile", "profile"])
@pytest.mark.parametrize("content", [b"", b"not a model\n", b"\x00" * 100, b"\xff" * 100, b"PK\x03\x04"], ids=repr)
def test_a_file_that_is_no_model(refused: Refused, tmp_path: Path, command: str, content: bytes):
    (tmp_path / "bad.onnx").write_bytes(content)
    assert "bad.onnx" in refused(command, "bad.onnx", "--target", "x86-64", "--out", "out")


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.99])
def test_a_truncated_model(refused: Refused, cnn: Path, kept: float):
    whole = cnn.read_bytes()
    cnn.write_bytes(whole[: int(len(whole) * kept)])
    assert "cnn.onnx" in refused("compile", cnn, "--target", "x86-64", "--out", "out")


def test_a_folder_and_a_missing_file_instead_of_a_model(refused: Refused, tmp_path: Path):
    (tmp_path / "folder").mkdir()
    assert "folder" in refused("compile", "folder", "--target", "x86-64", "--out", "out")
    assert "missing.onnx" in refused("compile", "missing.onnx", "--target", "x86-64", "--out", "out")


@pytest.mark.parametrize("option", ["--out", "--data"])
def test_a_name_that_no_file_can_have(refused: Refused, cnn: Path, option: str):
    out = () if option == "--out" else ("--out", "out")
    assert "File name too long" in refused("compile", cnn, "--target", "x86-64", *out, option, "x" * 300)


@pytest.mark.parametrize("source", ["pypi:", "pypi:nothing", "pypi:a==1!", "pypi:a!b.onnx", "pypi:a==1!../b.onnx", ""])
def test_a_malformed_source(refused: Refused, source: str):
    refused("compile", source, "--target", "x86-64", "--out", "out")


def test_an_unknown_operator_is_named(refused: Refused, tmp_path: Path):
    model = _save(tmp_path / "m.onnx", helper.make_node("Rellu", ["x"], ["y"], name="act"))
    said = refused("compile", model, "--target", "x86-64", "--out", "out")
    assert "Rellu" in said


def test_an_operator_that_cannot_be_compiled_is_named(refused: Refused, tmp_path: Path):
    model = _save(tmp_path / "m.onnx", helper.make_node("Bernoulli", ["x"], ["y"], name="size"), shape=(3, 3))
    said = refused("compile", model, "--target", "x86-64", "--out", "out")
    assert "Bernoulli" in said and "size" in said


#: node, operator set, and what its refusal says of it
CONTRADICTIONS = [
    (
        helper.make_node("Softmax", ["x"], ["y"], name="far", axis=99),
        17,
        "Softmax node 'far' does not take float32 2x3, with axis=99",
    ),
    (helper.make_node("Transpose", ["x"], ["y"], name="turn", perm=[0, 0]), 17, "Transpose node 'turn'"),
    (
        helper.make_node("MatMul", ["x", "x"], ["y"], name="product"),
        13,
        "MatMul node 'product' does not take float32 2x3 and float32 2x3",
    ),
]


@pytest.mark.parametrize(("node", "opset", "part"), CONTRADICTIONS, ids=lambda each: getattr(each, "name", None))
def test_a_contradiction_is_told_without_a_word_of_onnxs(
    refused: Refused, tmp_path: Path, node: onnx.NodeProto, opset: int, part: str
):
    model = model_of([node], {"x": (2, 3)}, ["y"], name="bad", opset=opset)
    onnx.save(model, tmp_path / "m.onnx")
    said = refused("compile", tmp_path / "m.onnx", "--target", "x86-64", "--out", "out")
    assert part in said
    assert not any(word in said for word in ("/project/", "Assertion", "Inference", "op_type", "tensor("))


def test_an_operator_of_another_domain_is_named(refused: Refused, tmp_path: Path):
    model = _save(tmp_path / "m.onnx", helper.make_node("Relu", ["x"], ["y"], domain="my"), domain="my")
    assert "my" in refused("compile", model, "--target", "x86-64", "--out", "out")


@pytest.mark.parametrize("command", ["optimize", "compile", "profile"])
def test_an_unknown_target_suggests_the_near_one(refused: Refused, cnn: Path, command: str):
    assert "rpi4" in refused(command, cnn, "--target", "rpi44", "--out", "out")


@pytest.mark.parametrize(
    "shape, said",
    [
        ("image=1x3x16x17", "16"),  # the file says 16
        ("image=1x3x16", "image"),
        ("picture=1x3x16x16", "image"),
        ("image", "image"),
        ("image=", "image="),
        ("image=1xax3", "1xax3"),
        ("image=0x3x16x16", "0x3"),
        ("=1x3", "=1x3"),
        ("image=99999999999999999999x3x16x16", "image"),
    ],
)
def test_a_shape_that_contradicts_the_model_or_is_none(refused: Refused, cnn: Path, shape: str, said: str):
    assert said in refused("compile", cnn, "--target", "x86-64", "--shape", shape, "--out", "out")


def test_an_output_that_the_model_lacks(refused: Refused, cnn: Path):
    assert "no output 'nosuch'" in refused("compile", cnn, "--target", "x86-64", "--output", "nosuch", "--out", "out")


@pytest.mark.parametrize(
    ("option", "form", "said"),
    [
        ("--input", "image", "no form"), ("--input", "image=", "no form"), ("--input", "image=uint9", "'uint9' is not a form"),
        ("--input", "image=std=-1", "std: -1 is not above 0"), ("--input", "image=mean=1e39", "mean: not finite in float32"),
        ("--input", "picture=uint8", "no input 'picture'"), ("--input", "image=mean=1:2:3:4:5", "5 numbers of mean"),
        ("--io", "int8", "quantised"), ("--io", "int9", "io: 'int9'"), ("--output", "scores=argmx", "'argmx'"),
    ],
)  # fmt: skip
def test_a_form_of_a_port_that_is_none(refused: Refused, cnn: Path, option: str, form: str, said: str):
    assert said in refused("compile", cnn, "--target", "x86-64", option, form, "--out", "out")


def test_an_open_shape_is_asked_for(refused: Refused, tmp_path: Path):
    model = _save(tmp_path / "m.onnx", helper.make_node("Relu", ["x"], ["y"]), shape=("batch", "width"))
    assert "--shape" in refused("compile", model, "--target", "x86-64", "--out", "out")


@pytest.mark.parametrize("fix", ["image", "image=", "image=red", "=1", "image={}", "picture=1", "image=[[1],[2,3]]"])
def test_a_malformed_fixed_value(refused: Refused, cnn: Path, fix: str):
    refused("compile", cnn, "--target", "x86-64", "--fix", fix, "--out", "out")


@pytest.mark.parametrize("bound", ["boxes", "boxes=", "boxes=0", "=3", "boxes=1.5", "boxes=300"])
def test_a_malformed_bound_and_one_of_no_result(refused: Refused, cnn: Path, bound: str):
    said = refused("compile", cnn, "--target", "x86-64", "--bound", bound, "--out", "out")
    assert (
        "The data decide no length 'boxes'" if bound == "boxes=300" else "--bound boxes=300"
    ) in said or bound in said


def test_two_bounds_of_one_result(refused: Refused, cnn: Path):
    bounds = ["--bound", "boxes=3", "--bound", "boxes=4"]
    for command in (("compile", cnn, "--target", "x86-64", "--out", "out"), ("add", cnn), ("init", "--model", cnn)):
        assert "has the bound 3 already" in refused(*command, *bounds)


@pytest.mark.parametrize(
    "budget", ["ram", "ram=", "ram=big", "ram=-1", "ram=1XiB", "rom=1MiB", "=1MiB", "ram=1e400MiB", "ram=nan"]
)
def test_a_malformed_budget(refused: Refused, cnn: Path, budget: str):
    said = refused("optimize", cnn, "--target", "x86-64", "--budget", budget, "--out", "out")
    assert budget in said and ("ram=512KiB" in said or budget != "ram")


def test_a_misspelt_quantity_suggests_the_near_one(refused: Refused, cnn: Path):
    assert "'ram'" in refused("optimize", cnn, "--target", "x86-64", "--budget", "rom=1MiB", "--out", "out")


def test_two_budgets_of_one_memory(refused: Refused, cnn: Path):
    given = ("--budget", "ram=1MiB", "--budget", "ram=2MiB")
    assert "ram has a budget already" in refused("optimize", cnn, "--target", "x86-64", *given, "--out", "out")


def test_a_budget_of_a_memory_that_the_board_lacks_suggests_the_near_one(refused: Refused, cnn: Path):
    said = refused("optimize", cnn, "--target", "stm32f746", "--budget", "dtmc=64KiB", "--out", "out")
    assert "--budget dtmc=64KiB: not a budget" in said and "'dtcm'" in said


@pytest.mark.tvm
def test_an_unknown_strategy_suggests_the_near_one(refused: Refused, cnn: Path):
    said = refused("optimize", cnn, "--target", "x86-64", "--strategy", "gredy", "--out", "out")
    assert "'greedy'" in said


@pytest.mark.tvm
@pytest.mark.parametrize("command", ["optimize", "compile"])
@pytest.mark.parametrize("threads", ["0", "-1", "65"])
def test_threads_that_are_no_number_of_threads(refused: Refused, cnn: Path, command: str, threads: str):
    said = refused(command, cnn, "--target", "rpi4", "--threads", threads, "--out", "out")
    assert said == f"threads is {threads}. Give a number from 1 to 64."


@pytest.mark.parametrize("threads", ["two", "1.5", ""])
def test_threads_that_are_no_number(passfit, cnn: Path, threads: str):
    done = passfit("compile", cnn, "--target", "rpi4", f"--threads={threads}", "--out", "out")
    assert done.code == 2 and "--threads" in done.err and "integer" in done.err


def test_threads_on_a_device_that_has_none(refused: Refused, cnn: Path, tmp_path: Path):
    memories = 'memories = [{name = "f", kind = "flash", size = "4MiB", start = 0}, {name = "r", kind = "ram", size = "4MiB", start = 0x20000000}]\n'
    bare = f'[tool.passfit.targets.bare]\nbase = "rpi4"\ntriple = "aarch64-none-elf"\n{memories}'
    (tmp_path / "pyproject.toml").write_text(bare)
    said = refused("compile", cnn, "--target", "bare", "--threads", "2", "--out", "out")
    assert "'bare' (aarch64-none-elf) has no POSIX threads" in said


def test_an_extra_compute_without_limit(refused: Refused, cnn: Path):
    assert "inf" in refused("optimize", cnn, "--target", "x86-64", "--max-extra-compute", "inf", "--out", "out")


@pytest.mark.parametrize("limit", ["20", "0ms", "fast"])
def test_a_malformed_latency(refused: Refused, cnn: Path, limit: str):
    assert limit in refused("optimize", cnn, "--target", "x86-64", "--max-latency", limit, "--out", "out")


@pytest.mark.tvm
def test_no_milliseconds_of_another_machine(refused: Refused, cnn: Path):
    assert "1.5x" in refused("optimize", cnn, "--target", "visionfive2", "--max-latency", "20ms", "--out", "out")


@pytest.mark.parametrize(
    "content, said",
    [
        ('{"passes": ["legalise", "fuse-operators"]}', "'legalize'"),
        ('{"passes": ["legalize", "fuse-operators{dept=2}"]}', "'depth'"),
        ('{"passes": ["legalize", "fuse-operators{depth=two}"]}', "two"),
        ('{"passes": ["legalize", "order{by=luck}"]}', "luck"),
        ('{"passes": ["fuse-operators", "legalize"]}', "fuse-operators"),
        ('{"passes": ["canonicalize-bindings"]}', "legalize"),
        ('{"passes": []}', "legalize"),
        ('{"passes": "legalize"}', "passes"),
        ('{"passes": [1]}', "passes"),
        ('{"pases": []}', "passes"),
        ("[]", "s.json"),
        ("{", "s.json"),
        ("", "s.json"),
        ("\x00", "s.json"),
    ],
)
def test_a_sequence_that_cannot_be_replayed(refused: Refused, cnn: Path, tmp_path: Path, content: str, said: str):
    (tmp_path / "s.json").write_text(content)
    assert said in refused("compile", cnn, "--target", "x86-64", "--sequence", "s.json", "--out", "out")


def test_a_sequence_that_is_not_there_or_not_text(refused: Refused, cnn: Path, tmp_path: Path):
    arguments = ("compile", cnn, "--target", "x86-64", "--out", "out", "--sequence")
    assert "none.json" in refused(*arguments, "none.json")
    (tmp_path / "folder").mkdir()
    assert "folder" in refused(*arguments, "folder")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    assert "binary.json" in refused(*arguments, "binary.json")


@pytest.mark.parametrize("command", ["optimize", "compile"])
def test_an_output_folder_that_cannot_be_written(refused: Refused, cnn: Path, tmp_path: Path, command: str):
    (tmp_path / "taken").write_text("mine")
    for out in ("taken", "taken/below", "taken/far/below", "/proc/passfit", "cnn.onnx"):
        assert out.split("/")[-1] in refused(command, cnn, "--target", "x86-64", "--out", out)


@pytest.mark.parametrize("out", ["folder", "none/effects.json", "taken/effects.json"])
def test_an_output_file_that_cannot_be_written(refused: Refused, cnn: Path, tmp_path: Path, out: str):
    (tmp_path / "taken").write_text("mine")
    (tmp_path / "folder").mkdir()
    refused("profile", cnn, "--out", out)


@pytest.mark.tvm
def test_an_output_file_that_turns_out_not_to_be_writable(refused: Refused, cnn: Path):
    assert "/proc/effects.json" in refused("profile", cnn, "--out", "/proc/effects.json")


@pytest.mark.tvm
@pytest.mark.fault("the toolchain", "it is not installed", "exit code 2 with the command that installs it")
def test_a_missing_toolchain(refused: Refused, cnn: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "ziglang" else find(name, *rest)
    )
    (tmp_path / "s.json").write_text('{"passes": ["legalize"]}')
    said = refused("compile", cnn, "--target", "x86-64", "--sequence", "s.json", "--out", "out/below")
    assert "pip install ziglang" in said


@pytest.mark.tvm
@pytest.mark.fault("the toolchain", "it fails", "exit code 2 with its message, no files")
def test_a_broken_toolchain_says_why(refused: Refused, cnn: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    broken = tmp_path / "shim" / "ziglang"
    broken.mkdir(parents=True)
    (broken / "zig").write_text("#!/bin/sh\necho 'error: no space left' >&2; exit 1\n")
    (broken / "zig").chmod(0o755)
    (broken / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(broken.parent)
    (tmp_path / "s.json").write_text('{"passes": ["legalize"]}')
    said = refused("compile", cnn, "--target", "x86-64", "--sequence", "s.json", "--out", "out")
    assert "no space left" in said


@pytest.mark.parametrize(
    "text, said",
    [
        ("modles: {}", "'models'"),
        ("targets: {rpi44: {}}", "rpi4"),
        ("targets: {rpi4: {budget: {ram: big}}}", "targets.rpi4.budget.ram"),
        ("models: [", "params.yaml"),
        ("- 1", "params.yaml"),
        ("models: {a: {source: x, shape: {}}}", "'shapes'"),
    ],
)
def test_the_gate_names_what_is_wrong_in_params(refused: Refused, tmp_path: Path, text: str, said: str):
    (tmp_path / "params.yaml").write_text(text)
    assert said in refused("gate")


def test_the_gate_without_params(refused: Refused):
    assert "params.yaml" in refused("gate")


def test_track_without_params(refused: Refused):
    assert "params.yaml" in refused("track")


@pytest.mark.parametrize("content", [None, "", "{", "[]", "{}", json.dumps({"program": {}})])
def test_explaining_what_is_no_result(refused: Refused, tmp_path: Path, content: str | None):
    (tmp_path / "result").mkdir()
    if content is not None:
        (tmp_path / "result" / "plan.json").write_text(content)
    assert "plan.json" in refused("explain", "result")


@pytest.mark.parametrize("models, said", [(["none.onnx"], "none.onnx"), (["pypi:x"], "pypi:x")])
def test_init_refuses_what_is_no_model(refused: Refused, models: list[str], said: str):
    refused("init", "--model", *models, "--target", "rpi4")
