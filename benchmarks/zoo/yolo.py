"""YOLO-V4-tiny for the 80 classes of COCO, 416×416: Wang et al., Scaled-YOLOv4 (2021); layers of yolov4-tiny.cfg."""

from __future__ import annotations

import onnx

from .network import Network

#: of a head: three boxes of four sides, a score, and the classes
FILTERS = 3 * (4 + 1 + 80)


def yolov4_tiny() -> onnx.ModelProto:
    """Build the network with two outputs, 13×13 and 26×26, not decoded."""
    net = Network("yolov4-tiny", (1, 3, 416, 416))
    with net.scope("backbone"):
        x = convolution(net, convolution(net, "input", 32, 3, 2), 64, 3, 2)
        for channels in (64, 128, 256):
            with net.scope(f"csp{channels}"):
                x, detail = csp_block(net, x, channels)
        x = convolution(net, x, 512, 3)
    with net.scope("neck"):
        x = convolution(net, x, 256, 1)
        finer = net.concat(net.upsample(convolution(net, x, 128, 1)), detail)
    with net.scope("head"):
        heads = [
            net.conv(convolution(net, *each, 3), FILTERS, 1, bias=True) for each in ((x, 512), (finer, 256))
        ]  # fmt: skip
    return net.model(*heads)


def csp_block(net: Network, x: str, channels: int) -> tuple[str, str]:
    """Send one half of the channels through two convolutions, whose results are joined twice; the pooled block, and what it
    joined last."""
    x = convolution(net, x, channels, 3)
    _, half = net.halves(x)
    first = convolution(net, half, channels // 2, 3)
    second = convolution(net, first, channels // 2, 3)
    joined = convolution(net, net.concat(second, first), channels, 1)
    return net.max_pool(net.concat(x, joined), 2, 2), joined


def convolution(net: Network, x: str, channels: int, kernel: int, stride: int = 1) -> str:
    return net.leaky_relu(net.batch_norm(net.conv(x, channels, kernel, stride)))
