"""Small modules of PyTorch that split, as networks do, with the shape of what they take."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - as everybody calls it


class GLU(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Linear(6, 8)

    def forward(self, x: Tensor) -> Tensor:
        return F.glu(self.w(x), -1)


class SwiGLU(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w, self.o = nn.Linear(6, 16), nn.Linear(8, 6)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.w(x).chunk(2, dim=-1)
        return self.o(F.silu(gate) * up)


class PackedAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.o = nn.Linear(6, 18), nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        q, k, v = (
            part.reshape(batch, length, 2, 3).transpose(1, 2)
            for part in self.qkv(x).split(6, dim=-1)
        )
        weights = (q @ k.transpose(-2, -1) / math.sqrt(3)).softmax(-1)
        return self.o((weights @ v).transpose(1, 2).reshape(batch, length, 6))


class UnboundAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(6, 18)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        qkv = self.qkv(x).reshape(batch, length, 3, 2, 3).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        return (q @ k.transpose(-2, -1)).softmax(-1) @ v


class GroupedQueries(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Linear(6, 12)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = torch.split(self.w(x), [8, 2, 2], dim=-1)
        q = q.unflatten(-1, (4, 2)).transpose(1, 2)
        k, v = (part.unsqueeze(1).expand(-1, 4, -1, -1) for part in (k, v))
        return (q @ k.transpose(-2, -1)).softmax(-1) @ v


class Rotary(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        first, second = x.chunk(2, dim=-1)
        angle = torch.arange(3, dtype=torch.float32)
        turned = torch.cat([-second, first], -1)
        return x * torch.cat([angle, angle]).cos() + turned * torch.cat([angle, angle]).sin()


class LSTMCell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w, self.u = nn.Linear(6, 16), nn.Linear(4, 16)

    def forward(self, x: Tensor) -> Tensor:
        h = c = x[:, 0, :4]
        for step in x.unbind(1)[:3]:
            i, f, g, o = (self.w(step) + self.u(h)).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        return h


class GRUCell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w, self.u = nn.Linear(6, 12), nn.Linear(4, 12)

    def forward(self, x: Tensor) -> Tensor:
        h = x[:, 0, 2:]
        for step in range(3):
            r, z, n = self.w(x[:, step]).split(4, -1)
            a, b, c = self.u(h).split(4, -1)
            update = (z + b).sigmoid()
            h = (n + (r + a).sigmoid() * c).tanh() * (1 - update) + update * h
        return h


class ShuffleNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        kept, other = x.chunk(2, 1)
        both = torch.cat([kept, self.conv(other)], 1)
        batch, channels, height, width = both.shape
        return both.view(batch, 2, channels // 2, height, width).transpose(1, 2).flatten(1, 2)


class CSP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.inner = nn.Conv2d(4, 8, 1), nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        parts = list(self.first(x).chunk(2, 1))
        parts += [self.inner(parts[-1]) for _ in range(2)]
        return torch.cat(parts, 1)


class Inception(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.reduce, self.large = nn.Conv2d(4, 6, 1), nn.Conv2d(3, 2, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        one, three, five = self.reduce(x).split([1, 3, 2], dim=1)
        return torch.cat([one, self.large(three), F.max_pool2d(five, 3, 1, 1)], 1)


class Res2Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 1, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        parts = list(torch.split(x, 1, 1))
        for index in range(1, len(parts)):
            parts[index] = self.conv(parts[index] + parts[index - 1])
        return torch.cat(parts, 1)


class MixtureOfExperts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(6, 3)
        self.experts = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        weights = self.gate(x).softmax(-1).split(1, dim=-1)
        return torch.stack([w * e(x) for w, e in zip(weights, self.experts, strict=True)]).sum(0)


class TopOfExperts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        values, _ = self.gate(x).topk(2, -1)
        first, second = values.softmax(-1).unbind(-1)
        return x * first.unsqueeze(-1) - x * second.unsqueeze(-1)


class GatedConvolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 6, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        value, gate = self.conv(x).tensor_split(2, 1)
        return value.tanh() * gate.sigmoid()


class WaveNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(5, 10, 3, padding=2, dilation=2)

    def forward(self, x: Tensor) -> Tensor:
        a, b = self.conv(x).split(5, 1)
        return a.tanh() * b.sigmoid() + x


class UNetSkip(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(4, 2, 2, 2)

    def forward(self, x: Tensor) -> Tensor:
        up = self.up(F.max_pool2d(x, 2))
        cropped = x[:, :, : up.shape[2], : up.shape[3]]
        skip, rest = cropped.split([2, 2], 1)
        return torch.cat([skip, up, rest], 1)


class Mamba(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w, self.dt = nn.Linear(6, 16), nn.Linear(2, 8)

    def forward(self, x: Tensor) -> Tensor:
        y, z = self.w(x).chunk(2, -1)
        dt, b, c = torch.split(y, [2, 3, 3], dim=-1)
        return F.softplus(self.dt(dt)) * (b * c).sum(-1, keepdim=True) * F.silu(z)


class WindowedAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(4, 12)

    def forward(self, x: Tensor) -> Tensor:
        batch, channels, height, width = x.shape
        windows = x.view(batch, channels, height // 2, 2, width // 2, 2)
        q, k, v = self.qkv(windows.permute(0, 2, 4, 3, 5, 1).reshape(-1, 4, channels)).chunk(3, -1)
        return (q @ k.transpose(1, 2)).softmax(-1) @ v


class ShiftedWindows(nn.Module):
    """Two heads in windows of two, as many heads as queries, which are unbound."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(6, 18)

    def forward(self, x: Tensor) -> Tensor:
        batch = x.shape[0]
        windows = torch.roll(x[:, :4], -1, 1).reshape(batch * 2, 2, 6)
        q, k, v = self.qkv(windows).reshape(batch * 2, 2, 3, 2, 3).permute(2, 0, 3, 1, 4).unbind(0)
        made = ((q @ k.transpose(-2, -1)).softmax(-1) @ v).transpose(1, 2)
        return torch.roll(made.reshape(batch, 4, 6), 1, 1)


class YOLOHead(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 7, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        xy, wh, rest = self.conv(x).flatten(2).sigmoid().split((2, 2, 3), 1)
        low, high = xy - wh / 2, xy + wh / 2
        return torch.cat([low, high], 1), rest


class FocalStem(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        patches = [x[..., i::2, j::2] for i in (0, 1) for j in (0, 1)]
        return torch.cat(patches, 1)


class Coupling(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Linear(3, 6)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        a, b = x.split([3, x.shape[-1] - 3], -1)
        scale, shift = self.w(a).chunk(2, -1)
        return torch.cat([a, b * scale.exp() + shift], -1), scale


class AdaptiveNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w, self.norm = nn.Linear(6, 18), nn.LayerNorm(6, elementwise_affine=False)

    def forward(self, x: Tensor) -> Tensor:
        shift, scale, gate = self.w(x.mean(1)).unsqueeze(1).tensor_split(3, -1)
        return x + gate * (self.norm(x) * (1 + scale) + shift)


class UnevenChunks(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        a, b, c = x.split([1, 3, x.shape[1] - 4], 1)
        first, *_, last = x.chunk(3, 1)
        return a.sum(1), b, c, first - x[:, :2], last


class Reversible(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.f, self.g = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        a, b = x.transpose(1, 2).split(3, 1)
        a = a + self.f(b.transpose(1, 2)).transpose(1, 2)
        return torch.cat([a, b + self.g(a.transpose(1, 2)).transpose(1, 2)], 1)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(6, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.attention(x, x, x, need_weights=False)[0]
        return found


class SumOfChunks(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        total = torch.zeros_like(x[:, :1])
        for chunk in x.split(2, dim=1):
            total = total + chunk.sum(1, keepdim=True)
        return total


class UnrolledLSTM(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.i, self.h = nn.Linear(6, 12), nn.Linear(3, 12)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h, c = torch.zeros(x.size(0), 3), torch.zeros(x.size(0), 3)
        steps: list[Tensor] = []
        for t in range(x.size(1)):
            i, f, g, o = (self.i(x[:, t]) + self.h(h)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            steps.append(h)
        return torch.stack(steps, 1), h


class Windows(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        means: list[Tensor] = []
        for start in range(x.size(1) - 2):
            means.append(x[:, start : start + 3].mean(1))
        return torch.stack(means, 1)


class ReversedChunks(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        parts: list[Tensor] = []
        for part in x.split(2, 1):
            parts.insert(0, part)
        return torch.cat(parts, 1)


class PairsOfChunks(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        parts = x.split(1, 1)
        pairs: list[Tensor] = []
        for i in range(len(parts) - 1):
            pairs.append(torch.cat([parts[i], parts[i + 1]], 1))
        return torch.stack(pairs, 0)


class BestOfRows(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        found: list[Tensor] = []
        for row in x.split(1, 0):
            best = row[:, :1]
            for part in row.split(2, 1):
                largest = part.max(1, keepdim=True)[0]
                if bool(largest.sum() > best.sum()):
                    best = largest
            found.append(best)
        return torch.cat(found, 0)


ROWS, IMAGE = (2, 5, 6), (2, 4, 6, 8)
SCRIPTED = (SumOfChunks, UnrolledLSTM, Windows, ReversedChunks, PairsOfChunks, BestOfRows)
"""What TorchScript's compiler turns into loops and lists, and a trace does not."""

ARCHITECTURES: dict[Callable[[], nn.Module], tuple[int, ...]] = {
    **dict.fromkeys((GLU, SwiGLU, PackedAttention, UnboundAttention, GroupedQueries), ROWS),
    **dict.fromkeys((Rotary, LSTMCell, GRUCell, MixtureOfExperts, TopOfExperts, Mamba), ROWS),
    **dict.fromkeys((WaveNet, Coupling, AdaptiveNorm, UnevenChunks, Reversible, Attention), ROWS),
    ShiftedWindows: ROWS,
    **dict.fromkeys((ShuffleNet, CSP, Inception, Res2Net, GatedConvolution, UNetSkip), IMAGE),
    **dict.fromkeys((WindowedAttention, YOLOHead, FocalStem), IMAGE),
    **dict.fromkeys(SCRIPTED, ROWS),
}
"""The modules, with the shape of what they take; the first dimension may be another."""
