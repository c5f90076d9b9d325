"""Build larger networks with hard orders: cells found by architecture search, and random wiring."""

from __future__ import annotations

from random import Random

from passfit.program import Buffer, Port, Program, Step, Tensor


class Network:
    """Builder of steps that each write one result of so many bytes; `program` hands out unread results."""

    def __init__(self, nbytes: int):
        self.sizes = [nbytes]
        self.steps: list[tuple[int, ...]] = []

    def step(self, nbytes: int, *reads: int) -> int:
        self.sizes.append(nbytes)
        self.steps.append(tuple(dict.fromkeys(reads)))
        return len(self.steps)

    def program(self) -> Program:
        read = {number for reads in self.steps for number in reads}
        return Program(
            name="network",
            steps=tuple(Step(f"k{write}", reads, (write,)) for write, reads in enumerate(self.steps, 1)),
            tensors=tuple(Tensor((size,), "uint8", buffer=number) for number, size in enumerate(self.sizes)),
            buffers=tuple(Buffer(f"b{number}", size) for number, size in enumerate(self.sizes)),
            weights=(),
            inputs=(Port("x", 0),),
            outputs=tuple(Port(f"y{write}", write) for write in range(1, len(self.sizes)) if write not in read),
        )


def cells(steps: int, seed: int) -> Program:
    """Build cells as in NASNet and DARTS: nodes add two chains of earlier operations, a concat ends the cell."""
    random = Random(seed)
    size = 64 * random.randint(8, 64)
    network = Network(size)
    before = last = network.step(size, 0)
    nodes = range(2, 2 + random.randint(3, 6))
    chains = [[(random.randrange(node), random.randint(1, 3)) for _ in "ab"] for node in nodes]
    while len(network.steps) < steps:
        size = size // 2 if random.random() < 0.25 and size > 256 else size
        made = [network.step(size, before), network.step(size, last)]
        for pair in chains:
            ends = []
            for source, length in pair:
                end = made[source]
                for _ in range(length):
                    end = network.step(size * random.choice((1, 1, 1, 2)), end)
                ends.append(end)
            made.append(network.step(size, *ends))
        before, last = last, network.step(size * len(nodes), *made[2:])
    return network.program()


def wired(steps: int, seed: int) -> Program:
    """Build Watts-Strogatz graphs in sequence, as in RandWire: each node adds up its inputs and convolves them."""
    random = Random(seed)
    network = Network(2048)
    last = 0
    while len(network.steps) < steps:
        last = _stage(network, random, last, [2048] * 16)
    return network.program()


def pruned(steps: int, seed: int) -> Program:
    """Build wired networks with more nodes, each with a random number of channels left by pruning."""
    random = Random(seed)
    network = Network(4096)
    last = 0
    while len(network.steps) < steps:
        last = _stage(network, random, last, [64 * random.randint(8, 64) for _ in range(32)])
    return network.program()


def _stage(network: Network, random: Random, source: int, sizes: list[int]) -> int:
    count = len(sizes)
    edges = set()
    for node in range(count):
        for near in (1, 2):
            other = (node + near) % count
            if random.random() < 0.75:
                other = random.choice([each for each in range(count) if each != node])
            edges.add((min(node, other), max(node, other)))
    made: list[int] = []
    for node, size in enumerate(sizes):
        reads = [made[one] for one, other in sorted(edges) if other == node] or [source]
        total = network.step(size, *reads) if len(reads) > 1 else reads[0]
        made.append(network.step(size, total))
    return network.step(sizes[0], *(made[node] for node in range(count) if all(one != node for one, _ in edges)))


KINDS = (cells, wired, pruned)
