"""MCUNet for visual wake words at 5 frames a second: Lin et al. (2020), mcunet-vww1 of its model zoo.

Shapes: those of assets/vww.tflite in github.com/mit-han-lab/tinyengine.
"""

from __future__ import annotations

import onnx

from .mobilenet import inverted_residual
from .network import Network

#: expansion, channels, stride and kernel of each block
BLOCKS = (
    (1, 8, 1, 3), (6, 16, 2, 3), (3, 16, 1, 3), (3, 16, 1, 3), (3, 24, 2, 7), (6, 24, 1, 3), (5, 24, 1, 5), (6, 40, 2, 7), (6, 40, 1, 7),
    (6, 48, 1, 3), (4, 48, 1, 3), (5, 96, 2, 5), (5, 96, 1, 3), (4, 96, 1, 3), (3, 160, 1, 7),
)  # fmt: skip


def mcunet_vww() -> onnx.ModelProto:
    net = Network("mcunet_vww", (1, 3, 80, 80))
    x = net.relu6(net.batch_norm(net.conv("input", 16, 3, 2)))
    for number, (expansion, channels, stride, kernel) in enumerate(BLOCKS):
        with net.scope(f"blocks.{number}"):
            x = inverted_residual(net, x, expansion, channels, stride, kernel)
    return net.classifier(x, classes=2)
