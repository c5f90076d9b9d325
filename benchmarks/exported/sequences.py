"""Build networks for texts, graphs and series: decoders with caches, state spaces, messages between nodes."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .network import Network


class RootMeanSquare(nn.Module):
    """Normalisation by the root of the mean square, as transformers writes it out."""

    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Llama(nn.Module):
    """Decoder layer of a llama: RMSNorm, rotated queries, grouped keys, SwiGLU, a cache at a position."""

    def __init__(self, width: int = 64, heads: int = 4, groups: int = 2, words: int = 300):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.words, self.norms = nn.Embedding(words, width), nn.ModuleList(RootMeanSquare(width) for _ in range(3))
        self.query, self.out = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.key, self.value = (nn.Linear(width, groups * self.size, bias=False) for _ in range(2))
        self.gate, self.up, self.down = (
            nn.Linear(*size, bias=False) for size in ((width, 128), (width, 128), (128, width))
        )
        self.register_buffer("rates", 1 / 10000 ** (torch.arange(0, self.size, 2).float() / self.size))

    def rotate(self, x: Tensor, positions: Tensor) -> Tensor:
        angle = positions[:, None].float() * self.rates
        angle = torch.cat((angle, angle), -1)
        left, right = x.chunk(2, -1)
        return x * angle.cos() + torch.cat((-right, left), -1) * angle.sin()

    def forward(self, tokens: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        past, count = keys.shape[2], tokens.shape[1]
        positions = torch.arange(past, past + count)
        x = self.words(tokens)
        normed = self.norms[0](x)
        query, key, value = (
            part(normed).unflatten(-1, (-1, self.size)).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        query, key = self.rotate(query, positions), self.rotate(key, positions)
        keys, values = torch.cat((keys, key), 2), torch.cat((values, value), 2)
        mask = torch.ones(count, past + count, dtype=torch.bool).tril(past)
        repeat = self.heads // self.groups
        found = F.scaled_dot_product_attention(
            query, keys.repeat_interleave(repeat, 1), values.repeat_interleave(repeat, 1), attn_mask=mask
        )
        x = x + self.out(found.transpose(1, 2).flatten(2))
        normed = self.norms[1](x)
        x = x + self.down(F.silu(self.gate(normed)) * self.up(normed))
        return self.norms[2](x)[:, -1] @ self.words.weight.T, keys, values


class StaticCache(Llama):
    """Llama that writes its keys into a cache of one size at a position that is an input."""

    def forward(self, tokens: Tensor, keys: Tensor, values: Tensor, position: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = self.words(tokens)
        normed = self.norms[0](x)
        query, key, value = (
            part(normed).unflatten(-1, (-1, self.size)).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        query, key = self.rotate(query, position), self.rotate(key, position)
        keys, values = keys.index_copy(2, position, key), values.index_copy(2, position, value)
        mask = torch.arange(keys.shape[2])[None, :] <= position[:, None]
        found = F.scaled_dot_product_attention(query, keys, values, attn_mask=mask, enable_gqa=True)
        x = x + self.out(found.transpose(1, 2).flatten(2))
        normed = self.norms[1](x)
        x = x + self.down(F.silu(self.gate(normed)) * self.up(normed))
        return self.norms[2](x)[:, -1] @ self.words.weight.T, keys, values


class Bert(nn.Module):
    """BERT: masked tokens, embeddings of segments, tanh of the first."""

    def __init__(self, width: int = 32, words: int = 200):
        super().__init__()
        self.words, self.places, self.kinds = (
            nn.Embedding(words, width),
            nn.Embedding(24, width),
            nn.Embedding(2, width),
        )
        self.norm = nn.LayerNorm(width)
        self.body = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(width, 4, 64, batch_first=True), 2, enable_nested_tensor=False
        )
        self.pool, self.head = nn.Linear(width, width), nn.Linear(width, 3)

    def forward(self, tokens: Tensor, kinds: Tensor, mask: Tensor) -> Tensor:
        x = self.norm(self.words(tokens) + self.kinds(kinds) + self.places(torch.arange(tokens.shape[1])))
        x = self.body(x, src_key_padding_mask=mask == 0)
        return self.head(torch.tanh(self.pool(x[:, 0])))


class Mamba(nn.Module):
    """Mamba's block: a selective scan over tokens, as a loop of Python that tracing unrolls."""

    def __init__(self, width: int = 16, inner: int = 32, states: int = 8, rank: int = 4):
        super().__init__()
        self.inner, self.states, self.rank = inner, states, rank
        self.enter, self.leave = nn.Linear(width, 2 * inner, bias=False), nn.Linear(inner, width, bias=False)
        self.depth = nn.Conv1d(inner, inner, 4, groups=inner, padding=3)
        self.choose, self.step = nn.Linear(inner, rank + 2 * states, bias=False), nn.Linear(rank, inner)
        self.rates, self.skip = (
            nn.Parameter(torch.log(torch.arange(1, states + 1).float().repeat(inner, 1))),
            nn.Parameter(torch.ones(inner)),
        )
        self.norm = nn.RMSNorm(width)

    def parts(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        inside, gate = self.enter(self.norm(x)).chunk(2, -1)
        inside = F.silu(self.depth(inside.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
        step, enter, leave = self.choose(inside).split((self.rank, self.states, self.states), -1)
        step = F.softplus(self.step(step))
        decay = torch.exp(step.unsqueeze(-1) * -torch.exp(self.rates))
        added = step.unsqueeze(-1) * enter.unsqueeze(2) * inside.unsqueeze(-1)
        return decay, added, leave, inside, gate

    def forward(self, x: Tensor) -> Tensor:
        decay, added, leave, inside, gate = self.parts(x)
        state, found = torch.zeros_like(added[:, 0]), []
        for token in range(x.shape[1]):
            state = decay[:, token] * state + added[:, token]
            found.append((state @ leave[:, token].unsqueeze(-1)).squeeze(-1))
        return x + self.leave((torch.stack(found, 1) + inside * self.skip) * F.silu(gate))


class LoopedMamba(Mamba):
    """Mamba's block whose scan stays a loop: a higher-order scan, or a scripted for."""

    def forward(self, x: Tensor) -> Tensor:
        from torch._higher_order_ops.scan import scan

        decay, added, leave, inside, gate = self.parts(x)

        def step(state: Tensor, parts: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor]:
            decay, added, leave = parts
            state = decay * state + added
            return state, (state @ leave.unsqueeze(-1)).squeeze(-1)

        rows = tuple(part.transpose(0, 1) for part in (decay, added, leave))
        _, found = scan(step, torch.zeros_like(added[:, 0]), rows)
        return x + self.leave((found.transpose(0, 1) + inside * self.skip) * F.silu(gate))


class ScriptedScan(nn.Module):
    """Scan over tokens by a loop that torch.jit.script keeps."""

    def __init__(self, width: int = 16):
        super().__init__()
        self.decay, self.enter = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        decay, enter = torch.sigmoid(self.decay(x)), self.enter(x)
        state = torch.zeros_like(enter[:, 0])
        found = torch.zeros_like(enter)
        for token in range(x.shape[1]):
            state = decay[:, token] * state + enter[:, token]
            found[:, token] = state
        return found


class Chunked(nn.Module):
    """Mamba-2's scan: chunks by cumulative sums and products of matrices, no loop."""

    def __init__(self, width: int = 16, states: int = 8, heads: int = 2):
        super().__init__()
        self.heads, self.states = heads, states
        self.parts, self.out = nn.Linear(width, width + 2 * states + heads), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        inside, enter, leave, step = self.parts(x).split((x.shape[-1], self.states, self.states, self.heads), -1)
        inside = inside.unflatten(-1, (self.heads, -1))
        decay = -F.softplus(step).transpose(1, 2)
        total = decay.cumsum(-1)
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        weight = torch.exp((total.unsqueeze(-1) - total.unsqueeze(-2)).masked_fill(~mask, -torch.inf))
        found = torch.einsum("bln,bsn,bhls,bshp->blhp", leave, enter, weight, inside)
        return self.out(found.flatten(2))


class Messages(nn.Module):
    """Graph network: GCN by index_add, degrees by scatter_add, GAT's softmax over edges by scatter_reduce."""

    def __init__(self, attention: bool, nodes: int = 20, width: int = 16):
        super().__init__()
        self.nodes, self.attention = nodes, attention
        self.first, self.second, self.score = nn.Linear(8, width), nn.Linear(width, 4), nn.Linear(2 * width, 1)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        source, target = edges[0], edges[1]
        x = self.first(x)
        if self.attention:
            score = F.leaky_relu(self.score(torch.cat((x[source], x[target]), 1)).squeeze(1), 0.2)
            top = torch.full((self.nodes,), -1e9).scatter_reduce(0, target, score, "amax")
            weight = torch.exp(score - top[target])
            weight = weight / (torch.zeros(self.nodes).scatter_add(0, target, weight)[target] + 1e-9)
        else:
            degree = torch.ones(self.nodes).scatter_add(0, target, torch.ones(target.shape[0]))
            weight = degree.rsqrt()[source] * degree.rsqrt()[target]
        x = F.elu(torch.zeros_like(x).index_add(0, target, x[source] * weight[:, None]))
        pooled = torch.zeros_like(x).scatter_reduce(
            0, target[:, None].expand(-1, x.shape[1]), x[source], "mean", include_self=False
        )
        return self.second(x + pooled).log_softmax(-1)


class Forecast(nn.Module):
    """Series: PatchTST's patches by unfold, normalised by the window's own mean and spread."""

    def __init__(self, patch: int = 8, width: int = 32, horizon: int = 12):
        super().__init__()
        self.patch, self.embed = patch, nn.Linear(patch, width)
        self.body, self.head = (
            nn.TransformerEncoderLayer(width, 4, 64, batch_first=True, activation=F.gelu),
            nn.Linear(width * 11, horizon),
        )

    def forward(self, x: Tensor) -> Tensor:
        mean, spread = x.mean(1, keepdim=True), torch.sqrt(x.var(1, keepdim=True, unbiased=False) + 1e-5)
        patches = self.embed(((x - mean) / spread).transpose(1, 2).unfold(-1, self.patch, 4))
        found = self.head(self.body(patches.flatten(0, 1)).flatten(1)).view(x.shape[0], x.shape[2], -1).transpose(1, 2)
        return found * spread + mean


class Experts(nn.Module):
    """Mixture of experts: the two best of a gate, all computed, others weighed by 0."""

    def __init__(self, width: int = 16, experts: int = 4):
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.enter, self.leave = (
            nn.Parameter(torch.randn(experts, width, 32)),
            nn.Parameter(torch.randn(experts, 32, width)),
        )

    def forward(self, x: Tensor) -> Tensor:
        best, index = torch.topk(self.gate(x).softmax(-1), 2)
        weight = torch.zeros(*x.shape[:-1], self.enter.shape[0]).scatter(-1, index, best / best.sum(-1, keepdim=True))
        hidden = F.silu(torch.einsum("btd,edh->bteh", x, self.enter))
        return torch.einsum("bteh,ehd,bte->btd", hidden, self.leave, weight)


class Retention(nn.Module):
    """T5's attention: buckets of relative places, computed in the graph."""

    def __init__(self, width: int = 32, heads: int = 4):
        super().__init__()
        self.heads, self.table, self.parts, self.out = (
            heads,
            nn.Embedding(16, heads),
            nn.Linear(width, 3 * width),
            nn.Linear(width, width),
        )

    def forward(self, x: Tensor) -> Tensor:
        place = torch.arange(x.shape[1])
        distance = place[None, :] - place[:, None]
        bucket, size = (distance > 0).long() * 8, distance.abs()
        far = 4 + (torch.log(size.float() / 4) / math.log(16) * 4).long()
        bucket = bucket + torch.where(size < 4, size, torch.min(far, torch.full_like(far, 7)))
        bias = self.table(bucket).permute(2, 0, 1).unsqueeze(0)
        query, key, value = self.parts(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        found = (query @ key.transpose(-1, -2) + bias).softmax(-1) @ value
        return self.out(found.transpose(1, 2).flatten(2))


def tokens(*shape: int, words: int = 200) -> Tensor:
    return torch.randint(0, words, shape)


NETWORKS = {
    "llama": lambda: Network(Llama(), (tokens(1, 6), torch.randn(1, 2, 0, 16), torch.randn(1, 2, 0, 16))),
    "llama-cached": lambda: Network(Llama(), (tokens(1, 1), torch.randn(1, 2, 9, 16), torch.randn(1, 2, 9, 16))),
    "llama-static-cache": lambda: Network(
        StaticCache(), (tokens(1, 1), torch.randn(1, 2, 16, 16), torch.randn(1, 2, 16, 16), torch.tensor([5]))
    ),
    "bert": lambda: Network(
        Bert(), (tokens(1, 16), torch.zeros(1, 16, dtype=torch.int64), torch.ones(1, 16, dtype=torch.int64))
    ),
    "mamba-unrolled": lambda: Network(Mamba(), (torch.randn(1, 24, 16),)),
    "mamba-scan": lambda: Network(LoopedMamba(), (torch.randn(1, 24, 16),)),
    "scripted-scan": lambda: Network(ScriptedScan(), (torch.randn(1, 24, 16),), scripted=True),
    "mamba2-chunk": lambda: Network(Chunked(), (torch.randn(1, 24, 16),)),
    "gcn": lambda: Network(Messages(False), (torch.randn(20, 8), tokens(2, 50, words=20))),
    "gat": lambda: Network(Messages(True), (torch.randn(20, 8), tokens(2, 50, words=20))),
    "patch-tst": lambda: Network(Forecast(), (torch.randn(1, 48, 3),)),
    "experts": lambda: Network(Experts(), (torch.randn(1, 8, 16),)),
    "t5-attention": lambda: Network(Retention(), (torch.randn(1, 20, 32),)),
}
