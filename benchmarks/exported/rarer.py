"""Build networks of rarer operators: Fourier layers, regulated lengths, sparse choices, points in grids, loops that end."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .network import Network


class Fourier(nn.Module):
    """Fourier neural operator: a real transform in two dimensions, few modes mixed by complex weights, and back."""

    def __init__(self, width: int = 8, modes: int = 4):
        super().__init__()
        self.modes, self.skip = modes, nn.Conv2d(width, width, 1)
        self.weight, self.first, self.last = (
            nn.Parameter(torch.randn(2, width, width, modes, modes)),
            nn.Conv2d(1, width, 1),
            nn.Conv2d(width, 1, 1),
        )

    def forward(self, field: Tensor) -> Tensor:
        x = self.first(field)
        spectrum = torch.view_as_real(torch.fft.rfft2(x))[:, :, : self.modes, : self.modes]
        real, imaginary = spectrum[..., 0], spectrum[..., 1]
        product = lambda a, b: torch.einsum("bixy,ioxy->boxy", a, b)  # noqa: E731
        mixed = (
            product(real, self.weight[0]) - product(imaginary, self.weight[1]),
            product(real, self.weight[1]) + product(imaginary, self.weight[0]),
        )
        high, wide = x.shape[-2:]
        padded = [F.pad(part, (0, wide // 2 + 1 - self.modes, 0, high - self.modes)) for part in mixed]
        found = torch.fft.irfft2(torch.complex(*padded), s=(high, wide))
        return self.last(F.gelu(found + self.skip(x)))


class Mixed(nn.Module):
    """FNet: tokens mixed by the real part of a Fourier transform in two dimensions."""

    def __init__(self, width: int = 32):
        super().__init__()
        self.words, self.norm, self.feed = nn.Embedding(100, width), nn.LayerNorm(width), nn.Linear(width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens)
        x = self.norm(x + torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real)
        return x + F.gelu(self.feed(x))


class Regulator(nn.Module):
    """FastSpeech: each sound repeated as long as its predicted duration, up to a number of frames."""

    def __init__(self, width: int = 16, frames: int = 32):
        super().__init__()
        self.frames, self.words, self.length, self.head = (
            frames,
            nn.Embedding(40, width),
            nn.Linear(width, 1),
            nn.Conv1d(width, 8, 3, padding=1),
        )

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens)
        duration = torch.clamp(torch.round(torch.exp(self.length(x).squeeze(-1))), 0, 6)
        end = duration.cumsum(1)
        place = torch.arange(self.frames).view(1, -1, 1)
        path = ((place < end.unsqueeze(1)) & (place >= (end - duration).unsqueeze(1))).float()
        return self.head((path @ x).transpose(1, 2))


class Repeated(nn.Module):
    """FastSpeech as most write it: repeat_interleave by durations, whose length the data decide."""

    def __init__(self, width: int = 16):
        super().__init__()
        self.words, self.length, self.head = nn.Embedding(40, width), nn.Linear(width, 1), nn.Linear(width, 8)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens)[0]
        duration = torch.clamp(torch.round(torch.exp(self.length(x).squeeze(-1))), 0, 6).long()
        return self.head(torch.repeat_interleave(x, duration, dim=0))


class Sparse(nn.Module):
    """TabNet's step: sparsemax over features by sorting and cumulative sums, gated layers."""

    def __init__(self, features: int = 12, width: int = 16):
        super().__init__()
        self.norm, self.mask, self.body, self.head = (
            nn.BatchNorm1d(features),
            nn.Linear(features, features),
            nn.Linear(features, 2 * width),
            nn.Linear(width, 3),
        )

    def forward(self, row: Tensor) -> Tensor:
        row = self.norm(row)
        score = self.mask(row)
        ordered, _ = torch.sort(score, dim=-1, descending=True)
        rank = torch.arange(1, score.shape[-1] + 1, dtype=score.dtype)
        total = ordered.cumsum(-1) - 1
        support = (rank * ordered > total).sum(-1, keepdim=True)
        limit = total.gather(-1, support - 1) / support.to(score.dtype)
        return self.head(F.glu(self.body(row * torch.clamp(score - limit, min=0))))


class Pillars(nn.Module):
    """PointPillars: features of points, scattered into a grid seen from above."""

    def __init__(self, width: int = 16, side: int = 16):
        super().__init__()
        self.width, self.side = width, side
        self.body, self.head = (
            nn.Sequential(nn.Linear(9, width), nn.BatchNorm1d(width), nn.ReLU()),
            nn.Conv2d(width, 4, 3, padding=1),
        )

    def forward(self, points: Tensor, places: Tensor) -> Tensor:
        pillars, count, size = points.shape
        x = self.body(points.view(-1, size)).view(pillars, count, -1).amax(1)
        grid = torch.zeros(self.width, self.side * self.side)
        grid[:, places[:, 0] * self.side + places[:, 1]] = x.t()
        return self.head(grid.view(1, self.width, self.side, self.side))


class Keypoints(nn.Module):
    """SuperPoint: cells to pixels, peaks by pooling, the best by topk, descriptors sampled and normalised."""

    def __init__(self, width: int = 16):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, width, 3, 2, 1), nn.ReLU(), nn.Conv2d(width, width, 3, 4, 1), nn.ReLU())
        self.score, self.describe = nn.Conv2d(width, 65, 1), nn.Conv2d(width, 24, 1)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = self.body(image)
        heat = F.pixel_shuffle(self.score(x).softmax(1)[:, :-1], 8)
        heat = torch.where(heat == F.max_pool2d(heat, 5, 1, 2), heat, torch.zeros_like(heat))
        score, index = heat.flatten(1).topk(16)
        high, wide = heat.shape[-2:]
        point = torch.stack((index % wide, torch.div(index, wide, rounding_mode="floor")), -1)
        grid = point.float() / torch.tensor([wide - 1, high - 1]) * 2 - 1
        found = F.grid_sample(F.normalize(self.describe(x)), grid.unsqueeze(1), align_corners=True).squeeze(2)
        return point, score, F.normalize(found).transpose(1, 2)


class Chosen(nn.Module):
    """Rows above a threshold: boolean indexing, assignment by mask, nonzero."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mask = x[:, 0] > 0
        changed = x.clone()
        changed[mask] = changed[mask] * 2 + 1
        return x[mask], changed, torch.nonzero(mask).squeeze(1)


class Greedy(nn.Module):
    """Decoder of texts: words until the last one, in a loop that ends on a condition."""

    def __init__(self, width: int = 16, words: int = 20, most: int = 12):
        super().__init__()
        self.most, self.words = most, nn.Embedding(words, width)
        self.mix, self.head = nn.Linear(2 * width, width), nn.Linear(width, words)

    def forward(self, state: Tensor) -> Tensor:
        word = torch.zeros(1, dtype=torch.long)
        found = torch.zeros(self.most, dtype=torch.long)
        place = 0
        while place < self.most and bool(word[0] != 1):
            state = torch.tanh(self.mix(torch.cat((self.words(word), state), 1)))
            word = self.head(state).argmax(1)
            found[place] = word[0]
            place += 1
        return found


class Conditional(nn.Module):
    """Early exit: a branch by a condition on the data."""

    def __init__(self, width: int = 16):
        super().__init__()
        self.first, self.deep, self.head = (
            nn.Linear(8, width),
            nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)),
            nn.Linear(width, 4),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.first(x))
        return self.head(torch.cond(x.mean() > 0.3, lambda x: self.deep(x), lambda x: x.clone(), (x,)))


class Assorted(nn.Module):
    """Operators that few networks have, each on the same picture."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        row = x[0, 0, 0]
        return (
            F.unfold(x, 3, padding=1, stride=2), F.adaptive_max_pool2d(x, (3, 4)), F.lp_pool2d(x, 2, 2), F.local_response_norm(x, 3),
            torch.bucketize(row, torch.tensor([-1.0, 0.0, 1.0])), torch.flip(x, (3,)), torch.cumsum(row, 0), torch.tril(x, 1),
            torch.linalg.vector_norm(x, 3, (2, 3)), F.pixel_unshuffle(x, 2), torch.argsort(row), torch.var(x, (2, 3)),
            F.grid_sample(x, x[:, :2].permute(0, 2, 3, 1), padding_mode="reflection", align_corners=False),
        )  # fmt: skip


def numbers(*shape: int, below: int) -> Tensor:
    return torch.randint(0, below, shape)


NETWORKS = {
    "fourier-operator": lambda: Network(Fourier(), (torch.randn(1, 1, 16, 16),)),
    "fnet": lambda: Network(Mixed(), (numbers(1, 16, below=100),)),
    "fastspeech-path": lambda: Network(Regulator(), (numbers(1, 10, below=40),)),
    "fastspeech-repeat": lambda: Network(Repeated(), (numbers(1, 10, below=40),)),
    "tabnet": lambda: Network(Sparse(), (torch.randn(2, 12),)),
    "point-pillars": lambda: Network(Pillars(), (torch.randn(10, 8, 9), numbers(10, 2, below=16))),
    "superpoint": lambda: Network(Keypoints(), (torch.rand(1, 1, 64, 64),)),
    "chosen-rows": lambda: Network(Chosen(), (torch.randn(12, 4),)),
    "greedy-decoder": lambda: Network(Greedy(), (torch.randn(1, 16),), scripted=True),
    "early-exit": lambda: Network(Conditional(), (torch.randn(1, 8),)),
    "assorted": lambda: Network(Assorted(), (torch.randn(1, 4, 12, 12),)),
}
