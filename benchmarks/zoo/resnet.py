"""ResNet-50: He et al. (2016), with the strides in the 3×3 convolutions as in torchvision ("v1.5")."""

from __future__ import annotations

import onnx

from .network import Network

#: channels inside the blocks, blocks, stride of the first
STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
EXPANSION = 4


def resnet50() -> onnx.ModelProto:
    net = Network("resnet50")
    x = net.relu(net.batch_norm(net.conv("input", 64, 7, 2)))
    x = net.max_pool(x, 3, 2, 1)
    for number, (channels, count, stride) in enumerate(STAGES, 1):
        for block in range(count):
            with net.scope(f"layer{number}.{block}"):
                x = bottleneck(net, x, channels, stride if block == 0 else 1)
    return net.classifier(x)


def bottleneck(net: Network, x: str, channels: int, stride: int) -> str:
    """Append 1×1, 3×3, 1×1, and past them the input itself, projected if its shape is another."""
    y = net.relu(net.batch_norm(net.conv(x, channels, 1)))
    y = net.relu(net.batch_norm(net.conv(y, channels, 3, stride)))
    y = net.batch_norm(net.conv(y, channels * EXPANSION, 1))
    if net.shapes[x] != net.shapes[y]:
        with net.scope("downsample"):
            x = net.batch_norm(net.conv(x, channels * EXPANSION, 1, stride))
    return net.relu(net.add(y, x))
