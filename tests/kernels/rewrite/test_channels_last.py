"""Check that kernels with channels last compute the same, in the same memory, and are refused elsewhere."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax

from passfit import api
from passfit.errors import SequenceError
from passfit.kernels.lower.lower import Lowered
from passfit.kernels.rewrite.channels_last import channels_last, digest_of, movable_results, with_channels_last
from passfit.passes.program.layout import Layout
from passfit.passes.sequence.apply import apply_program_passes
from passfit.passes.sequence.catalogue import parse_spec
from passfit.passes.sequence.replay import replay
from passfit.passes.sequence.sequence import TVM_DEFAULT, Sequence
from passfit.targets import get_target

from ... import strategies  # noqa: F401  (the settings of hypothesis)
from ...models import run as run_onnx
from ...models import save
from ...passes.models import MODELS
from ...profiles import examples
from ..programs import lowered, random_inputs, run, weight

pytestmark = pytest.mark.tvm
HOST = get_target("x86-64")


def branches() -> Lowered:
    """Build convolutions of all kinds, poolings, a sum, a concatenation, and a mean on odd extents."""

    def body(x):
        conv, relu = relax.op.nn.conv2d, relax.op.nn.relu
        first = relu(relax.op.add(conv(x, weight(8, 3, 3, 3), padding=1, strides=2), weight(1, 8, 1, 1)))
        deep = relu(conv(first, weight(8, 1, 3, 3), padding=1, groups=8))
        grouped = conv(deep, weight(8, 4, 1, 1), groups=2)
        summed = relax.op.add(grouped, first)
        pooled = relax.op.nn.max_pool2d(summed, (3, 3), (1, 1), (1, 1))
        averaged = relax.op.nn.avg_pool2d(summed, (3, 3), (1, 1), (1, 1))
        joined = relax.op.concat([pooled, relax.op.sigmoid(averaged), first], 1)
        return relax.op.mean(relu(conv(joined, weight(5, 24, 1, 1))), [2, 3])

    return lowered([(2, 3, 11, 9)], body)


@pytest.fixture(scope="module")
def network() -> tuple[Lowered, list[np.ndarray], np.ndarray]:
    program = branches()
    inputs = random_inputs(program)
    return program, inputs, run(program, inputs)[0]


@settings(max_examples=examples(10))
@given(data=st.data())
def test_any_results_may_lie_so_and_all_comes_out_the_same(network, data: st.DataObject):
    before, inputs, expected = network
    can = sorted(movable_results(before.program).values())
    assert len(can) >= 6
    layout = Layout("+".join(map(str, sorted(data.draw(st.sets(st.sampled_from(can), min_size=1))))))
    after, _ = apply_program_passes(before, [layout, parse_spec("share"), parse_spec("order")])
    sizes, whole = (Counter(buffer.nbytes for buffer in each.program.buffers) for each in (after, before))
    assert sizes <= whole  # some are shared
    assert len(after.program.steps) == len(before.program.steps)
    np.testing.assert_allclose(run(after, inputs)[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_models_agree_with_onnx_runtime(name: str, tmp_path: Path):
    imported = api.load(save(MODELS[name](), tmp_path))
    shape = [dim.dim_value for dim in imported.onnx.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    plain, _ = replay(Sequence.parse(TVM_DEFAULT), imported.graph, imported.onnx, name)
    steps = "+".join(map(str, sorted(movable_results(plain.program).values())))
    layout = (f"layout{{steps={steps}}}",) if steps else ()
    program, _ = replay(Sequence.parse((*TVM_DEFAULT, *layout, "share", "order")), imported.graph, imported.onnx, name)
    for found, expected in zip(run(program, [x]), run_onnx(imported.onnx, {"x": x}), strict=True):
        assert np.abs(found - expected).max() <= 1e-4 * np.ptp(expected)


GOLDEN = """\
    for i0, i2, i3, i1 in T.grid(T.int64(1), T.int64(3), T.int64(5), T.int64(2)):
        with T.sblock("compute"):
            v_i0, v_i2, v_i3, v_i1 = T.axis.remap("SSSS", [i0, i2, i3, i1])
            T.reads(x0[v_i0, v_i1, v_i2, v_i3])
            T.writes(compute[v_i0, v_i2, v_i3, v_i1])
            compute[v_i0, v_i2, v_i3, v_i1] = T.max(x0[v_i0, v_i1, v_i2, v_i3], T.float32(0.0))"""


def test_a_kernel_walks_what_it_writes_as_that_lies():
    (kernel,) = lowered([(1, 2, 3, 5)], relax.op.nn.relu).kernels.values()
    (found, repacks) = with_channels_last(kernel, [1])
    assert not repacks and found.script(show_meta=False).endswith(GOLDEN)
    (back, _) = with_channels_last(kernel, [])
    assert back.script() == kernel.script()


def test_weights_of_each_channel_lie_with_channels_last_too():
    def body(x):
        depthwise = relax.op.nn.conv2d(relax.op.nn.max_pool2d(x), weight(6, 1, 3, 3), groups=6)
        return relax.op.nn.max_pool2d(depthwise)

    before = lowered([(1, 6, 5, 5)], body)
    after = channels_last(before, {1})
    assert [each.shape for each in after.weights] == [(1, 1, 3, 3, 6)]
    np.testing.assert_array_equal(after.weights[0][0].transpose(3, 0, 1, 2), before.weights[0])


@pytest.mark.parametrize("steps", ["0", "7", "1+99"])
def test_what_cannot_lie_so_is_refused(steps: str):
    """Refuse the result of the last step, which is the output, and step 7, which does not exist."""
    program = lowered([(1, 3, 4, 4)], lambda x: relax.op.nn.relu(x))
    with pytest.raises(SequenceError, match="cannot lie with channels last"):
        apply_program_passes(program, [parse_spec(f"layout{{steps={steps}}}")])


def test_a_layout_of_another_program_is_refused():
    one, other = branches(), lowered([(1, 3, 4, 4)], lambda x: relax.op.nn.max_pool2d(relax.op.nn.max_pool2d(x)))
    layout = Layout("0", digest_of(other.program))
    assert apply_program_passes(other, [layout])
    with pytest.raises(SequenceError, match="another program"):
        apply_program_passes(one, [layout])


@pytest.mark.slow
def test_the_library_agrees_and_is_the_same_each_time(save_tiny_cnn: Callable[..., Path], tmp_path: Path):
    model, sequence = save_tiny_cnn(tmp_path / "cnn.onnx"), tmp_path / "sequence.json"
    imported = api.load(model)
    plain, _ = replay(Sequence.parse(TVM_DEFAULT), imported.graph, imported.onnx, "cnn")
    steps = "+".join(map(str, sorted(movable_results(plain.program).values())))
    sequence.write_text(json.dumps({"passes": [*TVM_DEFAULT, f"layout{{steps={steps}}}", "share", "order"]}))
    for name in ("one", "other"):
        report = api.compile_model(model, HOST, out=tmp_path / name, sequence=sequence)
        assert not report.measured.ran or report.measured.max_rel_error <= 1e-4
    assert (tmp_path / "one" / "libcnn.a").read_bytes() == (tmp_path / "other" / "libcnn.a").read_bytes()
