"""Build networks for pictures: recognisers, segmenters, transformers, generators."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .network import Network


def conv(inside: int, outside: int, size: int = 3, stride: int = 1, activation: type[nn.Module] = nn.SiLU) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(inside, outside, size, stride, size // 2, bias=False), nn.BatchNorm2d(outside), activation()
    )


class Recogniser(nn.Module):
    """CRNN: convolutions, a bidirectional LSTM over columns, a head for CTC."""

    def __init__(self, units: int = 24, classes: int = 37):
        super().__init__()
        self.body = nn.Sequential(
            conv(1, 16, activation=nn.ReLU), nn.MaxPool2d(2), conv(16, 32), nn.MaxPool2d((2, 1)), conv(32, 32)
        )
        self.recurrent = nn.LSTM(32 * 8, units, bidirectional=True)
        self.head = nn.Linear(2 * units, classes)

    def forward(self, image: Tensor) -> Tensor:
        columns = self.body(image).flatten(1, 2).permute(2, 0, 1)
        return self.head(self.recurrent(columns)[0]).log_softmax(2)


class WindowAttention(nn.Module):
    """Swin's block: windows, shifted by roll, with a table of relative biases."""

    def __init__(self, width: int, side: int, window: int = 4, shift: int = 0, heads: int = 2):
        super().__init__()
        self.side, self.window, self.shift, self.heads = side, window, shift, heads
        self.parts, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.feed = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.table = nn.Parameter(torch.randn((2 * window - 1) ** 2, heads))
        place = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
        distance = (place[:, :, None] - place[:, None]) + window - 1
        self.register_buffer("index", distance[0] * (2 * window - 1) + distance[1])
        region = torch.zeros(1, side, side, 1)
        cuts = (slice(0, -window), slice(-window, -shift), slice(-shift, None))
        if shift:
            for number, (rows, columns) in enumerate((a, b) for a in cuts for b in cuts):
                region[:, rows, columns] = number
        region = self.cut(region).squeeze(-1)
        self.register_buffer("mask", torch.where(region[:, :, None] == region[:, None], 0.0, -100.0))

    def cut(self, x: Tensor) -> Tensor:
        count, size = self.side // self.window, self.window
        x = x.view(x.shape[0], count, size, count, size, x.shape[-1])
        return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, size * size, x.shape[-1])

    def forward(self, x: Tensor) -> Tensor:
        count, size = self.side // self.window, self.window
        moved = torch.roll(self.norms[0](x), (-self.shift, -self.shift), (1, 2)) if self.shift else self.norms[0](x)
        windows = self.cut(moved)
        query, key, value = (
            self.parts(windows)
            .view(-1, size * size, 3, self.heads, windows.shape[-1] // self.heads)
            .permute(2, 0, 3, 1, 4)
        )
        score = query @ key.transpose(-2, -1) * (windows.shape[-1] // self.heads) ** -0.5
        score = score + self.table[self.index.view(-1)].view(size * size, size * size, -1).permute(2, 0, 1)
        if self.shift:
            score = score + self.mask.unsqueeze(1)
        found = self.out((score.softmax(-1) @ value).transpose(1, 2).flatten(2))
        found = found.view(-1, count, count, size, size, x.shape[-1]).permute(0, 1, 3, 2, 4, 5).reshape(x.shape)
        x = x + (torch.roll(found, (self.shift, self.shift), (1, 2)) if self.shift else found)
        return x + self.feed(self.norms[1](x))


class Windows(nn.Module):
    """Swin: patches, two blocks, merged patches, a head."""

    def __init__(self, width: int = 16):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, 4)
        self.blocks = nn.Sequential(WindowAttention(width, 8), WindowAttention(width, 8, shift=2))
        self.norm, self.merge, self.head = (
            nn.LayerNorm(4 * width),
            nn.Linear(4 * width, 2 * width, bias=False),
            nn.Linear(2 * width, 10),
        )

    def forward(self, image: Tensor) -> Tensor:
        x = self.blocks(self.patches(image).permute(0, 2, 3, 1))
        x = torch.cat([x[:, row::2, column::2] for column in (0, 1) for row in (0, 1)], -1)
        return self.head(self.merge(self.norm(x)).mean((1, 2)))


class Patches(nn.Module):
    """ViT: a class token, learnt places, PyTorch's encoder layers."""

    def __init__(self, width: int = 32):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 8, 8)
        self.first, self.places = nn.Parameter(torch.randn(1, 1, width)), nn.Parameter(torch.randn(1, 17, width))
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True, norm_first=True, activation="gelu")
        self.body, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(width, 10)

    def forward(self, image: Tensor) -> Tensor:
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat((self.first.expand(x.shape[0], -1, -1), x), 1) + self.places
        return self.head(self.body(x)[:, 0])


class ConvNeXt(nn.Module):
    """ConvNeXt: wide windows by depth, LayerNorm with channels last, GRN of its second version."""

    def __init__(self, width: int = 24):
        super().__init__()
        self.stem, self.norm0 = nn.Conv2d(3, width, 4, 4), nn.LayerNorm(width)
        self.depth, self.norm = nn.Conv2d(width, width, 7, padding=3, groups=width), nn.LayerNorm(width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.gamma, self.beta = nn.Parameter(torch.randn(4 * width)), nn.Parameter(torch.randn(4 * width))
        self.head = nn.Linear(width, 10)

    def forward(self, image: Tensor) -> Tensor:
        x = self.norm0(self.stem(image).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        y = F.gelu(self.wide(self.norm(self.depth(x).permute(0, 2, 3, 1))))
        size = torch.norm(y, p=2, dim=(1, 2), keepdim=True)
        y = self.gamma * (y * (size / (size.mean(-1, keepdim=True) + 1e-6))) + self.beta + y
        x = x + self.narrow(y).permute(0, 3, 1, 2)
        return self.head(x.mean((-2, -1)))


class LinearAttention(nn.Module):
    """EfficientViT's attention: ReLU of queries and keys, sums over places, a column of ones."""

    def __init__(self, width: int = 24, heads: int = 3):
        super().__init__()
        self.heads = heads
        self.stem, self.parts, self.out = (
            conv(3, width, 3, 4, nn.Hardswish),
            nn.Conv2d(width, 3 * width, 1),
            conv(width, width, 1),
        )
        self.mixed = nn.Conv2d(3 * width, 3 * width, 5, padding=2, groups=3 * width)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))

    def forward(self, image: Tensor) -> Tensor:
        x = self.stem(image)
        parts = self.parts(x)
        parts = (parts + self.mixed(parts)).flatten(2).unflatten(1, (self.heads, -1))
        query, key, value = parts.chunk(3, 2)
        query, key = F.relu(query), F.relu(key)
        value = F.pad(value, (0, 0, 0, 1), value=1.0)
        found = (value @ key.transpose(-1, -2)) @ query
        found = found[:, :, :-1] / (found[:, :, -1:] + 1e-6)
        return self.head(x + self.out(found.flatten(1, 2).unflatten(-1, x.shape[-2:])))


class Segmenter(nn.Module):
    """U-Net: bilinear resizing with or without aligned corners, or transposed windows, padded to fit."""

    def __init__(self, aligned: bool, width: int = 12):
        super().__init__()
        self.aligned = aligned
        self.down = nn.ModuleList((conv(3, width), conv(width, 2 * width), conv(2 * width, 2 * width)))
        self.up, self.head = nn.ModuleList((conv(4 * width, width), conv(2 * width, width))), nn.Conv2d(width, 3, 1)

    def forward(self, image: Tensor) -> Tensor:
        fine = self.down[0](image)
        middle = self.down[1](F.max_pool2d(fine, 2))
        x = self.down[2](F.avg_pool2d(middle, 2, ceil_mode=True))
        for skip, up in zip((middle, fine), self.up):
            x = up(torch.cat((skip, F.interpolate(x, skip.shape[-2:], mode="bilinear", align_corners=self.aligned)), 1))
        return self.head(x).argmax(1)


class Pyramid(nn.Module):
    """DeepLab's head: dilated windows, adaptive pooling, resizing to the input."""

    def __init__(self, width: int = 16):
        super().__init__()
        self.stem = conv(3, width, 3, 4)
        self.rates = nn.ModuleList(nn.Conv2d(width, width, 3, padding=rate, dilation=rate) for rate in (1, 3, 6))
        self.pools = nn.ModuleList(
            nn.Sequential(nn.AdaptiveAvgPool2d(size), nn.Conv2d(width, 4, 1), nn.ReLU()) for size in (1, 2, 3)
        )
        self.head = nn.Conv2d(3 * width + 12, 5, 1)

    def forward(self, image: Tensor) -> Tensor:
        x = self.stem(image)
        pooled = [F.interpolate(pool(x), x.shape[-2:], mode="bilinear", align_corners=False) for pool in self.pools]
        found = self.head(torch.cat([*(rate(x) for rate in self.rates), *pooled], 1))
        return F.interpolate(found, image.shape[-2:], mode="bilinear", align_corners=False).softmax(1)


class Modulated(nn.Module):
    """StyleGAN: weights scaled by a style and normalised, as a grouped convolution; blurred resizing, noise."""

    def __init__(self, width: int = 16, style: int = 16):
        super().__init__()
        self.mapping = nn.Sequential(nn.Linear(style, style), nn.LeakyReLU(0.2))
        self.first, self.weight = (
            nn.Parameter(torch.randn(1, width, 4, 4)),
            nn.Parameter(torch.randn(2, width, width, 3, 3)),
        )
        self.styles, self.colour = nn.ModuleList(nn.Linear(style, width) for _ in range(2)), nn.Conv2d(width, 3, 1)

    def forward(self, latent: Tensor) -> Tensor:
        latent = self.mapping(latent * torch.rsqrt(latent.square().mean(1, keepdim=True) + 1e-8))
        x = self.first.expand(latent.shape[0], -1, -1, -1)
        for weight, style in zip(self.weight, self.styles):
            weight = weight.unsqueeze(0) * style(latent)[:, None, :, None, None]
            weight = weight * torch.rsqrt(weight.square().sum((2, 3, 4), keepdim=True) + 1e-8)
            batch, outside, inside = weight.shape[:3]
            found = F.conv2d(x.reshape(1, batch * inside, *x.shape[2:]), weight.flatten(0, 1), padding=1, groups=batch)
            x = F.leaky_relu(found.view(batch, outside, *x.shape[2:]), 0.2) * 2**0.5
            x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        return torch.tanh(self.colour(x))


class Flow(nn.Module):
    """Optical flow: correlation of shifted features, warping by grid_sample."""

    def __init__(self, width: int = 12):
        super().__init__()
        self.body, self.head = conv(3, width, 3, 4), nn.Conv2d(9, 2, 3, padding=1)

    def forward(self, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        a, b = self.body(first), self.body(second)
        high, wide = a.shape[-2:]
        padded = F.pad(b, (1, 1, 1, 1))
        match = torch.stack(
            [(a * padded[..., y : y + high, x : x + wide]).mean(1) for y in range(3) for x in range(3)], 1
        )
        flow = self.head(match)
        row, column = torch.meshgrid(torch.linspace(-1, 1, high), torch.linspace(-1, 1, wide), indexing="ij")
        grid = torch.stack((column, row), -1)[None] + flow.permute(0, 2, 3, 1)
        return flow, F.grid_sample(b, grid, mode="bilinear", padding_mode="border", align_corners=True)


class Points(nn.Module):
    """PointNet: a transform from the points, shared layers, the largest over points."""

    def __init__(self, width: int = 32):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(3, width, 1), nn.BatchNorm1d(width), nn.ReLU(), nn.Conv1d(width, 2 * width, 1)
        )
        self.turn, self.head = (
            nn.Linear(2 * width, 9),
            nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, 8)),
        )

    def forward(self, points: Tensor) -> Tensor:
        turn = self.turn(torch.max(self.body(points), 2)[0]).view(-1, 3, 3) + torch.eye(3)
        moved = torch.bmm(points.transpose(2, 1), turn).transpose(2, 1)
        return self.head(torch.max(self.body(moved), 2, keepdim=True)[0].flatten(1))


class Reparametrised(nn.Module):
    """MobileOne: branches that are summed, squeeze and excitation."""

    def __init__(self, width: int = 24):
        super().__init__()
        self.stem = conv(3, width, 3, 2, nn.ReLU)
        self.wide = nn.ModuleList(conv(width, width, 3, 1, nn.Identity) for _ in range(3))
        self.point, self.skip = conv(width, width, 1, 1, nn.Identity), nn.BatchNorm2d(width)
        self.squeeze = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, 6, 1), nn.ReLU(), nn.Conv2d(6, width, 1), nn.Sigmoid()
        )
        self.shuffle, self.head = nn.ChannelShuffle(4), nn.Linear(width, 10)

    def forward(self, image: Tensor) -> Tensor:
        x = self.stem(image)
        x = F.relu(sum(branch(x) for branch in self.wide) + self.point(x) + self.skip(x))
        return self.head(F.adaptive_avg_pool2d(self.shuffle(x * self.squeeze(x)), 1).flatten(1))


class Upscaler(nn.Module):
    """Super-resolution: residuals, pixel shuffle, a bicubic skip."""

    def __init__(self, width: int = 16):
        super().__init__()
        self.first, self.body, self.last = (
            nn.Conv2d(3, width, 3, padding=1),
            conv(width, width, activation=nn.PReLU),
            nn.Conv2d(width, 12, 3, padding=1),
        )
        self.shuffle = nn.PixelShuffle(2)

    def forward(self, image: Tensor) -> Tensor:
        x = self.first(image)
        big = F.interpolate(image, scale_factor=2, mode="bicubic", align_corners=False)
        return torch.clamp(self.shuffle(self.last(x + self.body(x))) + big, 0, 1)


def image(side: int = 32, channels: int = 3) -> tuple[Tensor]:
    return (torch.rand(1, channels, side, side),)


NETWORKS = {
    "crnn": lambda: Network(Recogniser(), (torch.rand(1, 1, 32, 64),)),
    "swin": lambda: Network(Windows(), image(32)),
    "vit": lambda: Network(Patches(), image(32)),
    "convnext-v2": lambda: Network(ConvNeXt(), image(64)),
    "efficientvit": lambda: Network(LinearAttention(), image(64)),
    "unet-aligned": lambda: Network(Segmenter(True), image(36)),
    "unet-half-pixel": lambda: Network(Segmenter(False), image(36)),
    "deeplab": lambda: Network(Pyramid(), image(48)),
    "stylegan": lambda: Network(Modulated(), (torch.randn(1, 16),)),
    "optical-flow": lambda: Network(Flow(), (*image(48), *image(48))),
    "pointnet": lambda: Network(Points(), (torch.randn(1, 3, 64),)),
    "mobileone": lambda: Network(Reparametrised(), image(64)),
    "super-resolution": lambda: Network(Upscaler(), image(24)),
}
