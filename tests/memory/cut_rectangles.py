"""Generate boxes with a known fit: a rectangle of time × memory cut into pieces, hard as MiniMalloc's benchmarks."""

from __future__ import annotations

from random import Random

from passfit.memory.placement.greedy import Box


def guillotine(seed: int, count: int, steps: int, height: int) -> list[Box]:
    """Fill `steps` × `height` with `count` boxes: the largest piece is cut in two, repeatedly."""
    random = Random(seed)
    pieces = [(0, steps, 0, height)]
    while len(pieces) < count:
        pieces.sort(key=lambda piece: (piece[1] - piece[0]) * (piece[3] - piece[2]))
        # Mostly one of the large ones, so that sizes and lifetimes differ widely.
        start, end, low, high = pieces.pop(len(pieces) - 1 - min(len(pieces) - 1, int(random.expovariate(0.3))))
        across = random.random() < 0.5
        if across and end - start > 1:
            cut = random.randint(start + 1, end - 1)
            pieces += [(start, cut, low, high), (cut, end, low, high)]
        elif high - low > 1:
            cut = random.randint(low + 1, high - 1)
            pieces += [(start, end, low, cut), (start, end, cut, high)]
        else:
            pieces.append((start, end, low, high))
    return _shuffled(random, pieces)


def woven(seed: int, count: int, steps: int, height: int) -> list[Box]:
    """Cut the same with pinwheels: a piece becomes four around a fifth, which no straight cut takes apart."""
    random = Random(seed)
    pieces = [(0, steps, 0, height)]
    while len(pieces) < count:
        pieces.sort(key=lambda piece: (piece[1] - piece[0]) * (piece[3] - piece[2]))
        start, end, low, high = pieces.pop(len(pieces) - 1 - min(len(pieces) - 1, int(random.expovariate(0.3))))
        if end - start < 3 or high - low < 3:
            pieces.insert(0, (start, end, low, high))
            if all(piece[1] - piece[0] < 3 or piece[3] - piece[2] < 3 for piece in pieces):
                break
            continue
        left, right = sorted(random.sample(range(start + 1, end), 2))
        bottom, top = sorted(random.sample(range(low + 1, high), 2))
        pieces += [
            (start, right, low, bottom), (right, end, low, top), (left, end, top, high), (start, left, bottom, high),
            (left, right, bottom, top),
        ]  # fmt: skip
    return _shuffled(random, pieces)


def loosened(seed: int, boxes: list[Box], share: float) -> list[Box]:
    """Drop or shrink some boxes, a `share` of them."""
    random = Random(seed)
    kept = []
    for box in boxes:
        if random.random() >= share:
            kept.append(box)
        elif random.random() < 0.5 and box.size > 1:
            kept.append(Box(box.start, box.end, random.randint(1, box.size - 1)))
    return kept


def _shuffled(random: Random, pieces: list[tuple[int, int, int, int]]) -> list[Box]:
    boxes = [Box(start, end, high - low) for start, end, low, high in pieces]
    random.shuffle(boxes)
    return boxes
