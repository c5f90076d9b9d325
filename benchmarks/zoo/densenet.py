"""DenseNet-121: Huang et al. (2017). Every layer concatenates all features before it, as exporters write it."""

from __future__ import annotations

import onnx

from .network import Network

LAYERS = (6, 12, 24, 16)
GROWTH = 32


def densenet121() -> onnx.ModelProto:
    net = Network("densenet121")
    x = net.max_pool(net.relu(net.batch_norm(net.conv("input", 2 * GROWTH, 7, 2))), 3, 2, 1)
    for block, count in enumerate(LAYERS, 1):
        features = [x]
        for layer in range(1, count + 1):
            with net.scope(f"denseblock{block}.denselayer{layer}"):
                features.append(dense_layer(net, features))
        x = net.concat(*features)
        if block < len(LAYERS):
            with net.scope(f"transition{block}"):
                x = net.conv(net.relu(net.batch_norm(x)), net.channels(x) // 2, 1)
                x = net.average_pool(x, 2, 2)
    return net.classifier(net.relu(net.batch_norm(x)))


def dense_layer(net: Network, features: list[str]) -> str:
    """Return the features it adds."""
    x = net.concat(*features) if len(features) > 1 else features[0]
    x = net.conv(net.relu(net.batch_norm(x)), 4 * GROWTH, 1)
    return net.conv(net.relu(net.batch_norm(x)), GROWTH)
