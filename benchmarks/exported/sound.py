"""Build networks for sound: front ends, encoders, decoders with caches, vocoders."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .network import Network


class Spectrogram(nn.Module):
    """Log-mel spectrogram by torch.stft, with convolutions behind it."""

    def __init__(self, size: int = 256, hop: int = 128, bands: int = 40, classes: int = 12):
        super().__init__()
        self.size, self.hop = size, hop
        self.register_buffer("window", torch.hann_window(size))
        self.register_buffer("mel", torch.rand(bands, size // 2 + 1) / size)
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU()
        )  # fmt: skip
        self.head = nn.Linear(32, classes)

    def forward(self, sound: Tensor) -> Tensor:
        found = torch.stft(
            sound, self.size, self.hop, window=self.window, center=True, pad_mode="reflect", return_complex=True
        )
        power = found.abs() ** 2
        bands = torch.log10(torch.clamp(self.mel @ power, min=1e-10))
        bands = torch.maximum(bands, bands.max() - 8.0)
        return self.head(self.body(bands.unsqueeze(1)).mean((2, 3)))


class InverseSpectrogram(nn.Module):
    """Enhancer of speech: a mask on the complex spectrum, and back by torch.istft."""

    def __init__(self, size: int = 64):
        super().__init__()
        self.size = size
        self.register_buffer("window", torch.hann_window(size))
        self.mask = nn.Conv1d(size // 2 + 1, size // 2 + 1, 3, padding=1)

    def forward(self, sound: Tensor) -> Tensor:
        found = torch.stft(sound, self.size, self.size // 2, window=self.window, return_complex=True)
        masked = found * torch.sigmoid(self.mask(found.abs()))
        return torch.istft(masked, self.size, self.size // 2, window=self.window, length=sound.shape[-1])


class Attention(nn.Module):
    """Attention of several heads, with keys and values of a cache in front if they are given."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def split(self, x: Tensor) -> Tensor:
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, x: Tensor, memory: Tensor, cache: tuple[Tensor, Tensor] | None = None, causal: bool = False):
        query, key, value = (self.split(part) for part in (self.query(x), self.key(memory), self.value(memory)))
        if cache is not None:
            key, value = torch.cat((cache[0], key), 2), torch.cat((cache[1], value), 2)
        found = F.scaled_dot_product_attention(query, key, value, is_causal=causal)
        return self.out(found.transpose(1, 2).flatten(2)), key, value


class Encoder(nn.Module):
    """Whisper's encoder: two convolutions, sinusoids, layers with GELU."""

    def __init__(self, bands: int = 40, width: int = 64, frames: int = 50, layers: int = 2):
        super().__init__()
        self.first, self.second = nn.Conv1d(bands, width, 3, padding=1), nn.Conv1d(width, width, 3, stride=2, padding=1)
        places = torch.arange(frames)[:, None] * torch.exp(
            -torch.arange(width // 2) * math.log(10000) / (width // 2 - 1)
        )
        self.register_buffer("places", torch.cat((places.sin(), places.cos()), 1))
        self.layers = nn.ModuleList(
            nn.ModuleList((nn.LayerNorm(width), Attention(width, 4), nn.LayerNorm(width), feed_forward(width)))
            for _ in range(layers)
        )

    def forward(self, bands: Tensor) -> Tensor:
        x = F.gelu(self.second(F.gelu(self.first(bands)))).transpose(1, 2) + self.places
        for before, attention, between, feed in self.layers:
            normed = before(x)
            x = x + attention(normed, normed)[0]
            x = x + feed(between(x))
        return x


def feed_forward(width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))


class Decoder(nn.Module):
    """Whisper's decoder: tokens, the encoder's result, and caches that grow by a token."""

    def __init__(self, words: int = 200, width: int = 64, tokens: int = 32):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Parameter(torch.randn(tokens, width))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(4))
        self.own, self.cross, self.feed = Attention(width, 4), Attention(width, 4), feed_forward(width)

    def forward(self, tokens: Tensor, sound: Tensor, keys: Tensor | None = None, values: Tensor | None = None):
        start = 0 if keys is None else keys.shape[2]
        x = self.words(tokens) + self.places[start : start + tokens.shape[1]]
        normed = self.norms[0](x)
        cache = None if keys is None else (keys, values)
        found, keys, values = self.own(normed, normed, cache, causal=cache is None)
        x = x + found
        x = x + self.cross(self.norms[1](x), sound)[0]
        x = x + self.feed(self.norms[2](x))
        return self.norms[3](x) @ self.words.weight.T, keys, values


class Conformer(nn.Module):
    """Conformer's block: halved feed-forwards, relative attention, gated convolution by depth."""

    def __init__(self, width: int = 48, heads: int = 4):
        super().__init__()
        self.heads, self.width = heads, width
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(5))
        self.feeds = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width)) for _ in range(2)
        )
        self.parts, self.places, self.out = (
            nn.Linear(width, 3 * width),
            nn.Linear(width, width, bias=False),
            nn.Linear(width, width),
        )
        self.bias_content, self.bias_place = (nn.Parameter(torch.randn(heads, width // heads)) for _ in range(2))
        self.convolution = nn.Sequential(
            nn.Conv1d(width, 2 * width, 1), nn.GLU(1), nn.Conv1d(width, width, 15, padding=7, groups=width),
            nn.BatchNorm1d(width), nn.SiLU(), nn.Conv1d(width, width, 1),
        )  # fmt: skip

    def attend(self, x: Tensor) -> Tensor:
        batch, frames, _ = x.shape
        query, key, value = self.parts(x).view(batch, frames, 3, self.heads, -1).unbind(2)
        distance = torch.arange(frames - 1, -frames, -1, dtype=torch.float32)
        angle = distance[:, None] * torch.exp(torch.arange(0, self.width, 2) * (-math.log(10000) / self.width))
        table = self.places(torch.stack((angle.sin(), angle.cos()), -1).flatten(1)).view(2 * frames - 1, self.heads, -1)
        content = torch.einsum("bihd,bjhd->bhij", query + self.bias_content, key)
        place = torch.einsum("bihd,rhd->bhir", query + self.bias_place, table)
        # shift rows against each other, as Transformer-XL does
        place = (
            F.pad(place, (1, 0))
            .view(batch, self.heads, 2 * frames, frames)[:, :, 1:]
            .reshape(batch, self.heads, frames, -1)
        )
        score = (content + place[..., :frames]) / math.sqrt(self.width // self.heads)
        return self.out(torch.einsum("bhij,bjhd->bihd", score.softmax(-1), value).reshape(batch, frames, -1))

    def forward(self, x: Tensor) -> Tensor:
        x = x + 0.5 * self.feeds[0](self.norms[0](x))
        x = x + self.attend(self.norms[1](x))
        x = x + self.convolution(self.norms[2](x).transpose(1, 2)).transpose(1, 2)
        return self.norms[4](x + 0.5 * self.feeds[1](self.norms[3](x)))


class WaveNet(nn.Module):
    """Gated causal convolutions, dilated, with sums of skipped results."""

    def __init__(self, width: int = 16, layers: int = 5):
        super().__init__()
        self.first = nn.Conv1d(1, width, 1)
        self.gates = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=2**layer) for layer in range(layers))
        self.mixed = nn.ModuleList(nn.Conv1d(width, 2 * width, 1) for _ in range(layers))
        self.last = nn.Conv1d(width, 256, 1)

    def forward(self, sound: Tensor) -> Tensor:
        x, skipped = self.first(sound), 0.0
        for layer, (gate, mix) in enumerate(zip(self.gates, self.mixed)):
            signal, control = gate(F.pad(x, (2**layer, 0))).chunk(2, 1)
            kept, skip = mix(torch.tanh(signal) * torch.sigmoid(control)).split(x.shape[1], 1)
            x, skipped = x + kept, skipped + skip
        return self.last(torch.relu(skipped))


class Snake(nn.Module):
    """Activation x + sin²(ax) ÷ a."""

    def __init__(self, channels: int):
        super().__init__()
        self.alpha = nn.Parameter(torch.rand(1, channels, 1))

    def forward(self, x: Tensor) -> Tensor:
        return x + (self.alpha + 1e-9).reciprocal() * torch.sin(self.alpha * x).pow(2)


class Vocoder(nn.Module):
    """Vocoder: transposed convolutions under weight norm, with Snake between."""

    def __init__(self, bands: int = 32, width: int = 32):
        super().__init__()
        norm = nn.utils.parametrizations.weight_norm
        self.body = nn.Sequential(
            norm(nn.Conv1d(bands, width, 7, padding=3)), Snake(width),
            norm(nn.ConvTranspose1d(width, width // 2, 16, 8, padding=4)), Snake(width // 2),
            norm(nn.Conv1d(width // 2, width // 2, 3, dilation=3, padding=3)), Snake(width // 2),
            norm(nn.ConvTranspose1d(width // 2, width // 4, 7, 3, padding=2, output_padding=0)), Snake(width // 4),
            norm(nn.Conv1d(width // 4, 1, 7, padding=3)), nn.Tanh(),
        )  # fmt: skip

    def forward(self, bands: Tensor) -> Tensor:
        return self.body(bands)


class Temporal(nn.Module):
    """Temporal convolutions: dilated, causal by cutting, with residuals."""

    def __init__(self, channels: int = 12, width: int = 24):
        super().__init__()
        self.first = nn.Conv1d(channels, width, 1)
        self.layers = nn.ModuleList(
            nn.Conv1d(width, width, 3, padding=2 * 2**layer, dilation=2**layer) for layer in range(4)
        )
        self.head = nn.Linear(width, 6)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for layer in self.layers:
            x = F.relu(x + layer(x)[..., : x.shape[-1]])
        return self.head(x[:, :, -1])


class Codec(nn.Module):
    """Codec of sound: strided convolutions, residual codebooks by distance, and back."""

    def __init__(self, width: int = 16, codes: int = 32, books: int = 3):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(1, width, 7, padding=3), nn.ELU(), nn.Conv1d(width, width, 8, 4, padding=2)
        )
        self.books = nn.Parameter(torch.randn(books, codes, width))
        self.decoder = nn.Sequential(
            nn.ConvTranspose1d(width, width, 8, 4, padding=2), nn.ELU(), nn.Conv1d(width, 1, 7, padding=3)
        )

    def forward(self, sound: Tensor) -> tuple[Tensor, Tensor]:
        rest = self.encoder(sound).transpose(1, 2)
        total, chosen = torch.zeros_like(rest), []
        for book in self.books:
            index = torch.cdist(rest, book[None]).argmin(-1)
            vector = F.embedding(index, book)
            rest, total = rest - vector, total + vector
            chosen.append(index)
        return torch.stack(chosen, 1), self.decoder(total.transpose(1, 2))


class Recogniser(nn.Module):
    """Recogniser of speech: recurrent layers both ways and a head for CTC."""

    def __init__(self, kind: str, bands: int = 24, units: int = 24):
        super().__init__()
        self.body = getattr(nn, kind)(bands, units, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(2 * units, 30)

    def forward(self, bands: Tensor) -> Tensor:
        return self.head(self.body(bands)[0]).log_softmax(-1)


class Streamed(nn.Module):
    """Denoiser a frame at a time: GRU cells whose states are inputs and outputs."""

    def __init__(self, bands: int = 32, units: int = 32):
        super().__init__()
        self.first, self.second, self.mask = (
            nn.GRUCell(bands, units),
            nn.LSTMCell(units, units),
            nn.Linear(units, bands),
        )

    def forward(self, frame: Tensor, first: Tensor, second: Tensor, cell: Tensor):
        first = self.first(frame, first)
        second, cell = self.second(first, (second, cell))
        return frame * torch.sigmoid(self.mask(second)), first, second, cell


def tokens(*shape: int, words: int = 200) -> Tensor:
    return torch.randint(0, words, shape)


NETWORKS = {
    "spectrogram": lambda: Network(Spectrogram(), (torch.randn(1, 4000),)),
    "istft-mask": lambda: Network(InverseSpectrogram(), (torch.randn(1, 640),)),
    "whisper-encoder": lambda: Network(Encoder(), (torch.randn(1, 40, 100),)),
    "whisper-decoder": lambda: Network(Decoder(), (tokens(1, 8), torch.randn(1, 50, 64))),
    "whisper-decoder-cached": lambda: Network(
        Decoder(), (tokens(1, 1), torch.randn(1, 50, 64), torch.randn(1, 4, 9, 16), torch.randn(1, 4, 9, 16))
    ),
    "conformer": lambda: Network(Conformer(), (torch.randn(1, 40, 48),)),
    "wavenet": lambda: Network(WaveNet(), (torch.randn(1, 1, 400),)),
    "vocoder": lambda: Network(Vocoder(), (torch.randn(1, 32, 20),)),
    "temporal-convolutions": lambda: Network(Temporal(), (torch.randn(1, 12, 100),)),
    "codec": lambda: Network(Codec(), (torch.randn(1, 1, 320),)),
    "lstm-ctc": lambda: Network(Recogniser("LSTM"), (torch.randn(1, 40, 24),)),
    "gru-ctc": lambda: Network(Recogniser("GRU"), (torch.randn(1, 40, 24),)),
    "streamed-cells": lambda: Network(Streamed(), tuple(torch.randn(1, 32) for _ in range(4))),
}
