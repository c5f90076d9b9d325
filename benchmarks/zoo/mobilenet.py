"""MobileNet-V1: Howard et al. (2017). MobileNet-V2: Sandler et al. (2018)."""

from __future__ import annotations

import onnx

from .network import Network

#: V1: channels and stride of each depthwise separable convolution
SEPARABLE = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1))
#: V2: expansion, channels, blocks, stride of the first
INVERTED = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
)  # fmt: skip


def mobilenet_v1() -> onnx.ModelProto:
    net = Network("mobilenet_v1")
    x = net.relu(net.batch_norm(net.conv("input", 32, 3, 2)))
    for number, (channels, stride) in enumerate(SEPARABLE, 1):
        with net.scope(f"features.{number}"):
            x = net.relu(net.batch_norm(net.conv(x, net.channels(x), 3, stride, groups=net.channels(x))))
            x = net.relu(net.batch_norm(net.conv(x, channels, 1)))
    return net.classifier(x)


def mobilenet_v2(width: float = 1.0, size: int = 224) -> onnx.ModelProto:
    """Build the network with `width` times the published channels, for pictures of `size` × `size`."""
    net = Network("mobilenet_v2", (1, 3, size, size))
    x = net.relu6(net.batch_norm(net.conv("input", scaled(32, width), 3, 2)))
    for stage, (expansion, channels, count, stride) in enumerate(INVERTED, 1):
        for block in range(count):
            with net.scope(f"features.{stage}.{block}"):
                x = inverted_residual(net, x, expansion, scaled(channels, width), stride if block == 0 else 1)
    x = net.relu6(net.batch_norm(net.conv(x, scaled(1280, width), 1)))
    return net.classifier(x)


def scaled(channels: int, width: float) -> int:
    """Return the nearest multiple of 8 to `width` times the channels, at least 8, and never below nine tenths of it."""
    nearest = max(8, int(channels * width + 4) // 8 * 8)
    return nearest + 8 if nearest < 0.9 * channels * width else nearest


def inverted_residual(net: Network, x: str, expansion: int, channels: int, stride: int, kernel: int = 3) -> str:
    """Build a block: wide inside, narrow and without activation at the ends, which are added if they have one shape."""
    y, wide = x, expansion * net.channels(x)
    if expansion > 1:
        y = net.relu6(net.batch_norm(net.conv(y, wide, 1)))
    y = net.relu6(net.batch_norm(net.conv(y, wide, kernel, stride, groups=wide)))
    y = net.batch_norm(net.conv(y, channels, 1))
    return net.add(x, y) if net.shapes[x] == net.shapes[y] else y
