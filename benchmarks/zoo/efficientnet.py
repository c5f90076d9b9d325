"""EfficientNet-B0: Tan & Le (2019)."""

from __future__ import annotations

import onnx

from .network import Network

#: expansion, channels, blocks, stride of the first, kernel
STAGES = (
    (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)  # fmt: skip


def efficientnet_b0() -> onnx.ModelProto:
    net = Network("efficientnet_b0")
    x = net.swish(net.batch_norm(net.conv("input", 32, 3, 2)))
    for stage, (expansion, channels, count, stride, kernel) in enumerate(STAGES, 1):
        for block in range(count):
            with net.scope(f"features.{stage}.{block}"):
                x = mbconv(net, x, expansion, channels, stride if block == 0 else 1, kernel)
    x = net.swish(net.batch_norm(net.conv(x, 1280, 1)))
    return net.classifier(x)


def mbconv(net: Network, x: str, expansion: int, channels: int, stride: int, kernel: int) -> str:
    """Build the inverted residual of MobileNet-V2 with squeeze-and-excitation, a quarter of the narrow end wide."""
    y, wide = x, expansion * net.channels(x)
    if expansion > 1:
        y = net.swish(net.batch_norm(net.conv(y, wide, 1)))
    y = net.swish(net.batch_norm(net.conv(y, wide, kernel, stride, groups=wide)))
    y = squeeze_and_excite(net, y, net.channels(x) // 4)
    y = net.batch_norm(net.conv(y, channels, 1))
    return net.add(x, y) if net.shapes[x] == net.shapes[y] else y


def squeeze_and_excite(net: Network, x: str, squeezed: int) -> str:
    """Multiply every channel by a number between 0 and 1, made of the means of all channels: Hu et al. (2018)."""
    with net.scope("se"):
        y = net.swish(net.conv(net.global_average_pool(x), squeezed, 1, bias=True))
        return net.mul(x, net.sigmoid(net.conv(y, net.channels(x), 1, bias=True)))
