"""The zoo holds what it says: valid models of the published sizes, the same every time, that run."""

from __future__ import annotations

import hashlib
import math
from functools import cache

import numpy as np
import onnx
import pytest

from benchmarks.zoo import BUILDERS, MICRO, TRANSFORMERS, build
from benchmarks.zoo.mcunet import mcunet_vww
from benchmarks.zoo.mobilenet import mobilenet_v2
from benchmarks.zoo.randwire import NEIGHBOURS, NODES, watts_strogatz

#: learnt numbers, in millions, as published (of NASNet and RandWire, for networks of these cells and graphs)
PARAMETERS = {
    "vgg16": 138.4,
    "resnet50": 25.6,
    "mobilenet_v1": 4.2,
    "mobilenet_v2": 3.5,
    "efficientnet_b0": 5.3,
    "densenet121": 8.0,
    "squeezenet1.1": 1.24,
    "yolov4-tiny": 6.06,
    "unet": 31.0,
    "nasnet": 5.3,
    "randwire": 5.6,
}
OUTPUTS = {
    "yolov4-tiny": [(1, 255, 13, 13), (1, 255, 26, 26)],
    "unet": [(1, 2, 256, 256)],
}
#: marks of models whose weights take seconds, or half a minute, to check and to run
LARGE = {"unet": [pytest.mark.slow], "resnet50": [pytest.mark.slow], "vgg16": [pytest.mark.slow, pytest.mark.nightly]}

every_model = pytest.mark.parametrize("name", [pytest.param(name, marks=LARGE.get(name, [])) for name in BUILDERS])


@cache
def model(name: str) -> onnx.ModelProto:
    return BUILDERS[name]()


def shapes(values) -> list[tuple[int, ...]]:
    return [tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim) for value in values]


@every_model
def test_every_model_is_valid_and_its_shapes_are_those_of_its_nodes(name):
    # with full_check, inference that comes to other shapes than the outputs declare is an error
    onnx.checker.check_model(model(name), full_check=True)
    undeclared = onnx.ModelProto()
    undeclared.CopyFrom(model(name))
    for value in undeclared.graph.output:
        value.type.tensor_type.ClearField("shape")
    inferred = onnx.shape_inference.infer_shapes(undeclared, strict_mode=True)
    assert shapes(inferred.graph.output) == OUTPUTS.get(name, [(1, 1000)])


@every_model
def test_every_model_has_as_many_parameters_as_published(name):
    learnt = [w for w in model(name).graph.initializer if w.name.endswith((".weight", ".bias"))]
    assert sum(math.prod(w.dims) for w in learnt) / 1e6 == pytest.approx(PARAMETERS[name], rel=0.02)


@every_model
def test_every_model_has_the_same_bytes_twice(name):
    first, second = (each.SerializeToString(deterministic=True) for each in (model(name), BUILDERS[name]()))
    assert hashlib.sha256(first).digest() == hashlib.sha256(second).digest()


@every_model
def test_every_model_runs_and_its_results_are_of_order_one(name):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model(name).SerializeToString(), options, providers=["CPUExecutionProvider"])
    (shape,) = shapes(model(name).graph.input)
    image = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    for result in session.run(None, {"input": image}):
        assert np.isfinite(result).all()
        assert 0.1 < result.std() < 10


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_every_transformer_is_valid_the_same_twice_and_its_results_are_of_order_one(name):
    import onnxruntime as ort

    first, second = TRANSFORMERS[name](), TRANSFORMERS[name]()
    assert first.SerializeToString(deterministic=True) == second.SerializeToString(deterministic=True)
    onnx.checker.check_model(first, full_check=True)
    read = {tensor for node in first.graph.node for tensor in node.input}
    assert [each.name for each in first.graph.initializer if each.name not in read] == []
    session = ort.InferenceSession(first.SerializeToString(), providers=["CPUExecutionProvider"])
    random = np.random.default_rng(0)
    inputs = {
        port.name: random.standard_normal(port.shape, dtype=np.float32)
        if "float" in port.type
        else random.integers(0, 999, port.shape)
        for port in session.get_inputs()
    }
    for result in session.run(None, inputs):
        assert np.isfinite(result).all() and 0.1 < result.std() < 10


#: millions of learnt numbers and of multiply-adds, as published in MCUNet's model zoo: mbv2-320kB, mcunet-5fps-vww
SMALL = {
    "mobilenet_v2-0.35-int8": (lambda: mobilenet_v2(0.35, 144), 0.75, 23.5),
    "mcunet-vww-int8": (mcunet_vww, 0.43, 11.6),
}


@pytest.mark.parametrize("name", MICRO)
def test_networks_of_microcontrollers_are_of_the_published_sizes(name):
    make, parameters, multiplications = SMALL[name]
    graph = onnx.shape_inference.infer_shapes(make()).graph
    sizes = {each.name: tuple(each.dims) for each in graph.initializer}
    results = dict(zip([each.name for each in graph.value_info], shapes(graph.value_info))) | dict(
        zip([each.name for each in graph.output], shapes(graph.output))
    )
    layers = [node for node in graph.node if node.op_type in ("Conv", "Gemm")]
    counted = sum(math.prod(results[node.output[0]]) * math.prod(sizes[node.input[1]][1:]) for node in layers)
    learnt = sum(math.prod(size) for title, size in sizes.items() if title.endswith((".weight", ".bias")))
    assert (round(learnt / 1e6, 2), round(counted / 1e6, 1)) == (parameters, multiplications)


@pytest.mark.parametrize("name", MICRO)
def test_networks_of_microcontrollers_take_and_return_bytes_and_are_the_same_twice(name):
    import onnxruntime as ort

    first, second = MICRO[name](), MICRO[name]()
    assert first.SerializeToString(deterministic=True) == second.SerializeToString(deterministic=True)
    onnx.checker.check_model(first, full_check=True)
    session = ort.InferenceSession(first.SerializeToString(), providers=["CPUExecutionProvider"])
    (port,) = session.get_inputs()
    (result,) = session.run(None, {port.name: np.random.default_rng(0).integers(-128, 128, port.shape).astype(np.int8)})
    assert result.dtype == np.int8 and result.std() > 10


@every_model
def test_every_weight_is_read(name):
    read = {tensor for node in model(name).graph.node for tensor in node.input}
    assert [w.name for w in model(name).graph.initializer if w.name not in read] == []


def test_a_file_that_is_there_is_kept(tmp_path):
    path = build("squeezenet1.1", tmp_path / "cache")
    assert onnx.load(path) == model("squeezenet1.1")
    path.write_bytes(b"kept")
    assert build("squeezenet1.1", tmp_path / "cache").read_bytes() == b"kept"
    assert [each.name for each in path.parent.iterdir()] == ["squeezenet1.1.onnx"]


@pytest.mark.parametrize("seed", range(20))
def test_rewiring_keeps_the_number_of_edges(seed):
    edges = watts_strogatz(np.random.default_rng(seed))
    assert len(set(edges)) == len(edges) == NODES * NEIGHBOURS // 2
    assert all(0 <= source < target < NODES for source, target in edges)
