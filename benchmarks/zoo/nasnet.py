"""A network of the cells of NASNet-A: Zoph et al. (2018), figure 4, as large as the mobile one (4 @ 1056).

Unlike there, a previous cell of twice the size is brought to size by a 1×1 convolution of stride 2 alone.
"""

from __future__ import annotations

import onnx

from .network import Network

FILTERS, CELLS = 44, 4


def nasnet() -> onnx.ModelProto:
    net = Network("nasnet")
    with net.scope("stem"):
        before = x = net.batch_norm(net.conv("input", 32, 3, 2))
    for number, filters in enumerate((FILTERS // 4, FILTERS // 2)):
        with net.scope(f"stem{number}"):
            before, x = x, reduction_cell(net, x, before, filters)
    for stage in range(3):
        filters = FILTERS << stage
        if stage:
            with net.scope(f"reduction{stage}"):
                before, x = x, reduction_cell(net, x, before, filters)
        for number in range(CELLS):
            with net.scope(f"cell{stage}.{number}"):
                before, x = x, normal_cell(net, x, before, filters)
    return net.classifier(net.relu(x))


def normal_cell(net: Network, x: str, before: str, filters: int) -> str:
    """Build a cell from `x`, the cell before, and `before`, the one before that."""
    x, before = squeezed(net, x, before, filters)
    return net.concat(
        before,
        net.add(separable(net, x, 5), separable(net, before, 3)),
        net.add(separable(net, before, 5), separable(net, before, 3)),
        net.add(net.average_pool(x, 3, 1, 1), before),
        net.add(net.average_pool(before, 3, 1, 1), net.average_pool(before, 3, 1, 1)),
        net.add(separable(net, x, 3), x),
    )


def reduction_cell(net: Network, x: str, before: str, filters: int) -> str:
    """Half as large."""
    x, before = squeezed(net, x, before, filters)
    first = net.add(separable(net, x, 5, 2), separable(net, before, 7, 2))
    second = net.add(net.max_pool(x, 3, 2, 1), separable(net, before, 7, 2))
    return net.concat(
        second,
        net.add(net.average_pool(x, 3, 2, 1), separable(net, before, 5, 2)),
        net.add(net.average_pool(first, 3, 1, 1), second),
        net.add(separable(net, first, 3), net.max_pool(x, 3, 2, 1)),
    )


def squeezed(net: Network, x: str, before: str, filters: int) -> tuple[str, str]:
    """Both with `filters` channels, and of the size of `x`."""
    stride = net.shapes[before][2] // net.shapes[x][2]
    x = net.batch_norm(net.conv(net.relu(x), filters, 1))
    return x, net.batch_norm(net.conv(net.relu(before), filters, 1, stride))


def separable(net: Network, x: str, kernel: int, stride: int = 1) -> str:
    """ReLU, depthwise, pointwise, normalisation; all of it twice."""
    for each in (stride, 1):
        x = net.conv(net.relu(x), net.channels(x), kernel, each, groups=net.channels(x))
        x = net.batch_norm(net.conv(x, net.channels(x), 1))
    return x
