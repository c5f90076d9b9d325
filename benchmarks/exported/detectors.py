"""Build detectors, with their tails: suppressed, ranked, by peaks, by queries."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .network import Network


def conv(inside: int, outside: int, size: int = 3, stride: int = 1, activation: type[nn.Module] = nn.SiLU) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(inside, outside, size, stride, size // 2, bias=False), nn.BatchNorm2d(outside), activation()
    )


class Detector(nn.Module):
    """YOLO: three scales, boxes as expected distances, anchors made on the fly."""

    def __init__(self, width: int = 16, classes: int = 4, bins: int = 8):
        super().__init__()
        self.bins, self.classes = bins, classes
        self.stem, self.down = conv(3, width, 3, 4), nn.ModuleList(conv(width, width, 3, 2) for _ in range(2))
        self.up = conv(2 * width, width)
        self.boxes = nn.ModuleList(nn.Conv2d(width, 4 * bins, 1) for _ in range(3))
        self.scores = nn.ModuleList(nn.Conv2d(width, classes, 1) for _ in range(3))

    def features(self, image: Tensor) -> list[Tensor]:
        fine = self.stem(image)
        middle = self.down[0](fine)
        coarse = self.down[1](middle)
        return [self.up(torch.cat((fine, F.interpolate(middle, scale_factor=2.0, mode="nearest")), 1)), middle, coarse]

    def decode(self, image: Tensor) -> tuple[Tensor, Tensor]:
        boxes, scores = [], []
        for index, level in enumerate(self.features(image)):
            step = image.shape[-1] // level.shape[-1]
            high, wide = level.shape[-2:]
            row, column = torch.meshgrid(torch.arange(high) + 0.5, torch.arange(wide) + 0.5, indexing="ij")
            centre = torch.stack((column, row), -1).view(1, -1, 2)
            spread = self.boxes[index](level).view(1, 4, self.bins, -1).softmax(2)
            distance = (spread * torch.arange(self.bins, dtype=torch.float32).view(1, 1, -1, 1)).sum(2).transpose(1, 2)
            boxes.append(torch.cat((centre - distance[..., :2], centre + distance[..., 2:]), -1) * step)
            scores.append(self.scores[index](level).flatten(2).transpose(1, 2).sigmoid())
        return torch.cat(boxes, 1), torch.cat(scores, 1)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        return self.decode(image)


class Suppressed(Detector):
    """Detector with torchvision's batched NMS behind it, written as users do."""

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        import torchvision

        boxes, scores = self.decode(image)
        best, labels = scores[0].max(-1)
        kept = torchvision.ops.nms(boxes[0] + labels[:, None] * 4096.0, best, 0.5)[:20]
        return boxes[0][kept], best[kept], labels[kept]


class Batched(Detector):
    """Detector whose rows above a threshold go through batched_nms."""

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        import torchvision

        boxes, scores = self.decode(image)
        best, labels = scores[0].max(-1)
        likely = best > 0.4
        boxes, best, labels = boxes[0][likely], best[likely], labels[likely]
        kept = torchvision.ops.batched_nms(boxes, best, labels, 0.5)
        return boxes[kept], best[kept], labels[kept]


class Ranked(Detector):
    """Detector of RT-DETR's kind: the best by topk, no NMS."""

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        boxes, scores = self.decode(image)
        best, index = scores.flatten(1).topk(10, 1)
        chosen = torch.div(index, self.classes, rounding_mode="floor")
        return boxes.gather(1, chosen.unsqueeze(-1).expand(-1, -1, 4)), best, index % self.classes


class Centres(nn.Module):
    """CenterNet: peaks of a heat map by pooling, gathered offsets."""

    def __init__(self, width: int = 16, classes: int = 3):
        super().__init__()
        self.body, self.heat, self.size = conv(3, width, 3, 4), nn.Conv2d(width, classes, 1), nn.Conv2d(width, 4, 1)

    def forward(self, image: Tensor) -> Tensor:
        x = self.body(image)
        heat = self.heat(x).sigmoid()
        heat = heat * (F.max_pool2d(heat, 3, 1, 1) == heat).float()
        wide = heat.shape[-1]
        score, index = torch.topk(heat.flatten(1), 8)
        label, place = index // (heat.shape[-2] * wide), index % (heat.shape[-2] * wide)
        size = self.size(x).flatten(2).transpose(1, 2).gather(1, place.unsqueeze(-1).expand(-1, -1, 4))
        return torch.cat((torch.stack((place % wide, place // wide, label), -1).float(), score.unsqueeze(-1), size), -1)


class Queries(nn.Module):
    """DETR: GroupNorm, interpolated encodings of places, decoder layers of PyTorch."""

    def __init__(self, width: int = 32, queries: int = 10):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, width, 3, 4, 1), nn.GroupNorm(8, width), nn.GELU(), nn.Conv2d(width, width, 3, 2, 1)
        )
        self.places, self.queries = (
            nn.Parameter(torch.randn(1, width, 5, 5)),
            nn.Parameter(torch.randn(1, queries, width)),
        )
        self.encoder = nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True)
        self.decoder = nn.TransformerDecoder(
            nn.TransformerDecoderLayer(width, 4, 2 * width, batch_first=True, norm_first=True), 2
        )
        self.label, self.box = (
            nn.Linear(width, 5),
            nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4)),
        )

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        x = self.body(image)
        x = x + F.interpolate(self.places, size=x.shape[-2:], mode="bicubic", align_corners=False)
        memory = self.encoder(x.flatten(2).transpose(1, 2))
        found = self.decoder(self.queries.expand(x.shape[0], -1, -1), memory)
        return self.label(found).softmax(-1), self.box(found).sigmoid()


def image(side: int = 32, channels: int = 3) -> tuple[Tensor]:
    return (torch.rand(1, channels, side, side),)


NETWORKS = {
    "yolo-decoded": lambda: Network(Detector(), image(64)),
    "yolo-nms": lambda: Network(Suppressed(), image(64)),
    "yolo-batched-nms": lambda: Network(Batched(), image(64)),
    "rt-detr-topk": lambda: Network(Ranked(), image(64)),
    "centernet": lambda: Network(Centres(), image(64)),
    "detr": lambda: Network(Queries(), image(64)),
}
