"""VGG-16: Simonyan & Zisserman (2015), configuration D."""

from __future__ import annotations

import onnx

from .network import CLASSES, Network

STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))


def vgg16() -> onnx.ModelProto:
    net = Network("vgg16")
    x = "input"
    with net.scope("features"):
        for channels, count in STAGES:
            for _ in range(count):
                x = net.relu(net.conv(x, channels, bias=True))
            x = net.max_pool(x, 2, 2)
    with net.scope("classifier"):
        x = net.flatten(x)
        for units in (4096, 4096):
            x = net.relu(net.dense(x, units))
        return net.model(net.dense(x, CLASSES))
