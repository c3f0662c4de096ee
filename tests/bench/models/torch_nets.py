# SPDX-License-Identifier: Apache-2.0
"""Networks that no package brings as we want them: a U-Net and GPT-2 with and without a cache."""

import torch
from torch import nn
from torch.nn import functional


class Twice(nn.Sequential):
    """Two 3x3 convolutions, each with normalization and ReLU."""

    def __init__(self, n_in: int, n_out: int):
        layers = []
        for n in (n_in, n_out):
            layers += [nn.Conv2d(n, n_out, 3, padding=1), nn.BatchNorm2d(n_out), nn.ReLU()]
        super().__init__(*layers)


class UNet(nn.Module):
    """Ronneberger et al. (2015) with padding: a mask of the size of the image."""

    def __init__(self, n_classes: int = 2, widths=(32, 64, 128, 256)):
        super().__init__()
        ins = (3, *widths[:-1])
        self.down = nn.ModuleList(Twice(a, b) for a, b in zip(ins, widths, strict=True))
        pairs = list(zip(widths[:-1], widths[1:], strict=True))[::-1]
        self.raise_ = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in pairs)
        self.up = nn.ModuleList(Twice(2 * a, a) for a, _ in pairs)
        self.head = nn.Conv2d(widths[0], n_classes, 1)

    def forward(self, image):
        kept, x = [], image
        for block in self.down[:-1]:
            kept.append(block(x))
            x = functional.max_pool2d(kept[-1], 2)
        x = self.down[-1](x)
        for lift, block, beside in zip(self.raise_, self.up, kept[::-1], strict=True):
            x = block(torch.cat([beside, lift(x)], dim=1))
        return self.head(x)


class Block(nn.Module):
    """One layer of GPT-2; `past` [2, batch, heads, length, size] goes before the new keys."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attend(self, x, past):
        batch, length, width = x.shape
        cut = self.qkv(x).reshape(batch, length, 3, self.heads, width // self.heads)
        q, k, v = cut.permute(2, 0, 3, 1, 4).unbind(0)
        if past is None:
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
            n_past = past.shape[3]
            mine = torch.arange(length).unsqueeze(1) + n_past
            mask = torch.arange(n_past + length).unsqueeze(0) <= mine
            y = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        y = y.transpose(1, 2).reshape(batch, length, width)
        return self.out(y), torch.stack([k, v])

    def forward(self, x, past=None):
        y, present = self.attend(self.norm1(x), past)
        x = x + y
        hidden = functional.gelu(self.wide(self.norm2(x)), approximate="tanh")
        return x + self.narrow(hidden), present


class Gpt2(nn.Module):
    """GPT-2-small (Radford et al., 2019): 12 layers of 768, tied embedding, next-token scores."""

    def __init__(self, layers=12, width=768, heads=12, words=50257, places=1024):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(places, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for table in (self.words, self.places):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, input_ids):
        x = self.words(input_ids) + self.places(torch.arange(input_ids.shape[1]))
        for block in self.blocks:
            x, _ = block(x)
        return self.norm(x) @ self.words.weight.T


class Gpt2Cached(Gpt2):
    """The same with a cache: past [layers, 2, batch, heads, length, size] in, present out."""

    def forward(self, input_ids, past):
        begin = past.shape[4]
        x = self.words(input_ids) + self.places(torch.arange(input_ids.shape[1]) + begin)
        presents = []
        for i, block in enumerate(self.blocks):
            x, present = block(x, past[i])
            presents.append(present)
        return self.norm(x) @ self.words.weight.T, torch.stack(presents)


class Lstm(nn.Module):
    """Two LSTM layers over a series and a classifier of the last state; steps go first."""

    def __init__(self, features=32, units=256, classes=10):
        super().__init__()
        self.first, self.second = nn.LSTM(features, units), nn.LSTM(units, units)
        self.head = nn.Linear(units, classes)

    def forward(self, series):
        hidden, _ = self.first(series)
        _, (last, _) = self.second(hidden)
        return self.head(last[0])
