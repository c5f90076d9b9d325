"""Build blocks of larger models: diffusion, speakers, texts, volumes, halved numbers."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .network import Network


class Diffusion(nn.Module):
    """Step of a diffusion model: embedded time, GroupNorm, attention over pixels, transposed windows."""

    def __init__(self, width: int = 16):
        super().__init__()
        self.time, self.first = (
            nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2 * width)),
            nn.Conv2d(3, width, 3, padding=1),
        )
        self.norm, self.down, self.parts = (
            nn.GroupNorm(4, width),
            nn.Conv2d(width, width, 3, 2, 1),
            nn.Conv2d(width, 3 * width, 1),
        )
        self.up, self.last = nn.ConvTranspose2d(width, width, 4, 2, 1), nn.Conv2d(2 * width, 3, 3, padding=1)

    def forward(self, image: Tensor, time: Tensor) -> Tensor:
        angle = time.float()[:, None] * torch.exp(torch.arange(8) * -0.7)
        scale, shift = self.time(torch.cat((angle.sin(), angle.cos()), 1))[:, :, None, None].chunk(2, 1)
        x = self.first(image)
        y = self.down(F.silu(self.norm(x) * (1 + scale) + shift))
        query, key, value = self.parts(y).flatten(2).chunk(3, 1)
        y = y + F.scaled_dot_product_attention(*(part.transpose(1, 2) for part in (query, key, value))).transpose(
            1, 2
        ).reshape(y.shape)
        return self.last(torch.cat((x, self.up(y)), 1))


class Speaker(nn.Module):
    """ECAPA: dilated branches in a row, attention over frames, weighted means and spreads."""

    def __init__(self, bands: int = 24, width: int = 32):
        super().__init__()
        self.first, self.branches = (
            nn.Conv1d(bands, width, 5, padding=2),
            nn.ModuleList(nn.Conv1d(8, 8, 3, padding=2, dilation=2) for _ in range(3)),
        )
        self.weigh, self.head = (
            nn.Sequential(nn.Conv1d(3 * width, 8, 1), nn.Tanh(), nn.Conv1d(8, width, 1)),
            nn.Linear(2 * width, 16),
        )

    def forward(self, bands: Tensor) -> Tensor:
        x = F.relu(self.first(bands - bands.mean(-1, keepdim=True)))
        parts = list(x.chunk(4, 1))
        for index, branch in enumerate(self.branches):
            parts[index + 1] = F.relu(branch(parts[index + 1] + (parts[index] if index else 0)))
        x = torch.cat(parts, 1)
        mean, spread = x.mean(2, keepdim=True), x.std(2, keepdim=True)
        weight = self.weigh(torch.cat((x, mean.expand_as(x), spread.expand_as(x)), 1)).softmax(2)
        mean = (x * weight).sum(2)
        return F.normalize(self.head(torch.cat((mean, torch.sqrt(((x**2) * weight).sum(2) - mean**2 + 1e-4)), 1)))


class Text(nn.Module):
    """CLIP's text tower: causal mask, the row of the largest token, cosine with stored pictures."""

    def __init__(self, width: int = 32, words: int = 100):
        super().__init__()
        self.words, self.places, self.pictures = (
            nn.Embedding(words, width),
            nn.Parameter(torch.randn(12, width)),
            nn.Parameter(torch.randn(5, width)),
        )
        self.body, self.norm = (
            nn.TransformerEncoderLayer(width, 4, 64, batch_first=True, norm_first=True, activation="gelu"),
            nn.LayerNorm(width),
        )

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens) + self.places
        x = self.norm(self.body(x, src_mask=nn.Transformer.generate_square_subsequent_mask(12), is_causal=True))
        x = x[torch.arange(x.shape[0]), tokens.argmax(-1)]
        return 100 * F.cosine_similarity(x[:, None], self.pictures[None], dim=-1)


class Deformable(nn.Module):
    """Deformable attention: queries sample features of two levels at learnt offsets."""

    def __init__(self, width: int = 16, heads: int = 2, points: int = 2):
        super().__init__()
        self.heads, self.points = heads, points
        self.offset, self.weight, self.value, self.out = (
            nn.Linear(width, heads * 2 * points * 2),
            nn.Linear(width, heads * 2 * points),
            nn.Linear(width, width),
            nn.Linear(width, width),
        )

    def forward(self, queries: Tensor, places: Tensor, features: Tensor) -> Tensor:
        batch, count, width = queries.shape
        value = self.value(features).view(batch, -1, self.heads, width // self.heads)
        offset = self.offset(queries).view(batch, count, self.heads, 2, self.points, 2)
        weight = self.weight(queries).view(batch, count, self.heads, -1).softmax(-1)
        grid = 2 * (places[:, :, None, None, None] + offset / 8) - 1
        sampled = []
        for level, part in enumerate(value.split((64, 16), 1)):
            side = int(part.shape[1] ** 0.5)
            picture = part.flatten(2).transpose(1, 2).reshape(batch * self.heads, -1, side, side)
            sampled.append(
                F.grid_sample(picture, grid[:, :, :, level].transpose(1, 2).flatten(0, 1), align_corners=False)
            )
        weight = weight.transpose(1, 2).reshape(batch * self.heads, 1, count, -1)
        found = (torch.cat(sampled, -1) * weight).sum(-1).view(batch, width, count)
        return self.out(found.transpose(1, 2))


class Volume(nn.Module):
    """Network of volumes: windows in three dimensions, InstanceNorm, trilinear resizing."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.first, self.norm, self.down = (
            nn.Conv3d(1, width, 3, padding=1),
            nn.InstanceNorm3d(width, affine=True),
            nn.Conv3d(width, width, 3, 2, 1),
        )
        self.up, self.last = nn.ConvTranspose3d(width, width, 2, 2), nn.Conv3d(2 * width, 2, 1)

    def forward(self, volume: Tensor) -> Tensor:
        x = F.leaky_relu(self.norm(self.first(volume)), 0.01)
        y = self.up(self.down(x)) + F.interpolate(
            F.max_pool3d(x, 2), scale_factor=2, mode="trilinear", align_corners=False
        )
        return self.last(torch.cat((x, y), 1)).softmax(1)


class Receptance(nn.Module):
    """RWKV's block for a token: shifted mixing, states of sums, squared ReLU."""

    def __init__(self, width: int = 32):
        super().__init__()
        self.mix, self.decay, self.bonus = (
            nn.Parameter(torch.rand(3, width)),
            nn.Parameter(torch.randn(width)),
            nn.Parameter(torch.randn(width)),
        )
        self.parts, self.feed = (
            nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(4)),
            nn.Linear(width, width),
        )

    def forward(self, x: Tensor, before: Tensor, top: Tensor, total: Tensor, most: Tensor):
        receive, key, value = (part(x * mix + before * (1 - mix)) for part, mix in zip(self.parts[:3], self.mix))
        limit = torch.maximum(most, self.bonus + key)
        old, new = torch.exp(most - limit), torch.exp(self.bonus + key - limit)
        found = torch.sigmoid(receive) * (old * top + new * value) / (old * total + new)
        limit = torch.maximum(most - torch.exp(self.decay), key)
        old, new = torch.exp(most - torch.exp(self.decay) - limit), torch.exp(key - limit)
        out = x + self.parts[3](found)
        return out + torch.relu(self.feed(out)) ** 2, x, old * top + new * value, old * total + new, limit


class Halved(nn.Module):
    """Network in float16 or bfloat16 whose ports stay float32."""

    def __init__(self, dtype: torch.dtype):
        super().__init__()
        self.dtype = dtype
        self.body = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1),
            nn.ReLU(),
            nn.Conv2d(16, 16, 3, padding=1),
            nn.SiLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(16, 10),
        ).to(dtype)

    def forward(self, image: Tensor) -> Tensor:
        return self.body(image.to(self.dtype)).float()


def numbers(*shape: int, below: int) -> Tensor:
    return torch.randint(0, below, shape)


NETWORKS = {
    "diffusion-step": lambda: Network(Diffusion(), (torch.randn(1, 3, 16, 16), torch.tensor([7]))),
    "ecapa": lambda: Network(Speaker(), (torch.randn(1, 24, 60),)),
    "clip-text": lambda: Network(Text(), (numbers(1, 12, below=100),)),
    "deformable-attention": lambda: Network(
        Deformable(), (torch.randn(1, 6, 16), torch.rand(1, 6, 2), torch.randn(1, 80, 16))
    ),
    "volumes": lambda: Network(Volume(), (torch.randn(1, 1, 8, 12, 12),)),
    "rwkv": lambda: Network(Receptance(), tuple(torch.rand(1, 32) for _ in range(5))),
    "float16": lambda: Network(Halved(torch.float16), (torch.rand(1, 3, 32, 32),)),
    "bfloat16": lambda: Network(Halved(torch.bfloat16), (torch.rand(1, 3, 32, 32),)),
}
