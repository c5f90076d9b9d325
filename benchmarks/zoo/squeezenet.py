"""SqueezeNet 1.1: Iandola et al. (2016), in the second version of its authors."""

from __future__ import annotations

import onnx

from .network import CLASSES, Network

#: the width of the squeezed layer of each module, or None for a pooling
FIRES = (16, 16, None, 32, 32, None, 48, 48, 64, 64)


def squeezenet1_1() -> onnx.ModelProto:
    net = Network("squeezenet1.1")
    x = net.relu(net.conv("input", 64, 3, 2, padding=0, bias=True))
    x = net.max_pool(x, 3, 2)
    for number, squeezed in enumerate(FIRES, 3):
        with net.scope(f"features.{number}"):
            x = net.max_pool(x, 3, 2) if squeezed is None else fire(net, x, squeezed)
    with net.scope("classifier"):
        x = net.relu(net.conv(x, CLASSES, 1, bias=True))
        return net.model(net.flatten(net.global_average_pool(x)))


def fire(net: Network, x: str, squeezed: int) -> str:
    """Append a squeezed layer, then two beside each other that expand it, four times as wide each."""
    x = net.relu(net.conv(x, squeezed, 1, bias=True))
    narrow = net.relu(net.conv(x, 4 * squeezed, 1, bias=True))
    wide = net.relu(net.conv(x, 4 * squeezed, 3, bias=True))
    return net.concat(narrow, wide)
