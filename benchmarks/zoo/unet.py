"""U-Net: Ronneberger et al. (2015), padded so that the result is as large as the image; 256×256, two classes."""

from __future__ import annotations

import onnx

from .network import Network

LEVELS = 4


def unet(width: int = 64) -> onnx.ModelProto:
    """Build the network; `width` is the channels of the first level; every level below has twice as many."""
    net = Network("unet", (1, 3, 256, 256))
    x, skipped = "input", []
    for level in range(LEVELS):
        with net.scope(f"down{level}"):
            x = double_conv(net, x, width << level)
            skipped.append(x)
            x = net.max_pool(x, 2, 2)
    with net.scope("bottom"):
        x = double_conv(net, x, width << LEVELS)
    for level in reversed(range(LEVELS)):
        with net.scope(f"up{level}"):
            x = net.concat(skipped[level], net.conv_transpose(x, width << level))
            x = double_conv(net, x, width << level)
    return net.model(net.conv(x, 2, 1, bias=True))


def double_conv(net: Network, x: str, channels: int) -> str:
    for _ in range(2):
        x = net.relu(net.batch_norm(net.conv(x, channels)))
    return x
