"""RandWire of the small regime: Xie et al. (2019), WS(4, 0.75), 32 nodes a stage, 78 channels; seeded graphs."""

from __future__ import annotations

from functools import reduce

import numpy as np
import onnx

from .network import Network

CHANNELS, NODES, NEIGHBOURS, REWIRED = 78, 32, 4, 0.75


def randwire(seed: int = 1) -> onnx.ModelProto:
    net, random = Network("randwire"), np.random.default_rng(seed)
    x = net.batch_norm(net.conv("input", CHANNELS // 2, 3, 2))
    x = net.batch_norm(net.conv(net.relu(x), CHANNELS, 3, 2))
    for stage, channels in enumerate((CHANNELS, 2 * CHANNELS, 4 * CHANNELS), 3):
        with net.scope(f"stage{stage}"):
            x = random_stage(net, x, channels, watts_strogatz(random))
    x = net.relu(net.batch_norm(net.conv(net.relu(x), 1280, 1)))
    return net.classifier(x)


def watts_strogatz(random: np.random.Generator) -> list[tuple[int, int]]:
    """Return the edges of a ring of neighbours, some of them rewired; each from the lower number to the higher."""
    steps = range(1, NEIGHBOURS // 2 + 1)
    joined = {frozenset((node, (node + step) % NODES)) for node in range(NODES) for step in steps}
    for step in steps:
        for node in range(NODES):
            old = frozenset((node, (node + step) % NODES))
            if random.random() >= REWIRED:
                continue
            free = [other for other in range(NODES) if other != node and frozenset((node, other)) not in joined]
            joined.remove(old)
            joined.add(frozenset((node, free[random.integers(len(free))])))
    return sorted((min(edge), max(edge)) for edge in joined)


def random_stage(net: Network, x: str, channels: int, edges: list[tuple[int, int]]) -> str:
    """Nodes that nothing leads to read `x`, with stride 2; the result is the mean of those that lead to nothing."""
    made: list[str] = []
    for node in range(NODES):
        with net.scope(f"node{node}"):
            sources = [made[source] for source, target in edges if target == node]
            if len(sources) > 1:
                sources = [reduce(net.add, map(net.gated, sources))]
            y = net.relu(sources[0] if sources else x)
            y = net.conv(y, net.channels(y), 3, 1 if sources else 2, groups=net.channels(y))
            made.append(net.batch_norm(net.conv(y, channels, 1)))
    ends = [made[node] for node in range(NODES) if all(source != node for source, _ in edges)]
    return net.mean(ends)
