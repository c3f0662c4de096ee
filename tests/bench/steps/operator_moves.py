# SPDX-License-Identifier: Apache-2.0
"""More functions for operators.py: what moves elements, products, losses and whole layers."""

from collections.abc import Iterator

import numpy as np
import tenon as tn
import torch
import torch.nn.functional as F  # noqa: N812
from operator_cases import Case, f32, op, whole
from tenon import nn


def moves() -> Iterator[Case]:
    table = f32(30000, 128)
    yield Case("embedding", [table], [whole(30000, 16, 128)], tn.take,
               lambda t, i: F.embedding(i, t))  # fmt: skip
    yield Case("embedding of 50", [f32(50, 128)], [whole(50, 16, 1024)], tn.take,
               lambda t, i: F.embedding(i, t))  # fmt: skip
    yield Case("embedding bags", [table], [whole(30000, 64, 32)],
               lambda t, i: tn.sum(tn.take(t, i), axis=1),
               lambda t, i: F.embedding_bag(i, t, mode="sum"))  # fmt: skip
    for axis in (0, 1, 2):
        x = f32(64, 128, 96)
        i = whole(x.shape[axis], 50)
        yield Case(f"take, axis {axis}", [x], [i], lambda x, i, a=axis: tn.take(x, i, a),
                   lambda x, i, a=axis: x.index_select(a, i))  # fmt: skip
        i = whole(x.shape[axis], *x.shape)
        yield Case(f"take_along_axis {axis}", [x], [i],
                   lambda x, i, a=axis: tn.take_along_axis(x, i, a),
                   lambda x, i, a=axis: x.gather(a, i))  # fmt: skip
        yield Case(f"scatter_add {axis}", [x, f32(*x.shape)], [i],
                   lambda x, y, i, a=axis: op("ScatterElements", x, i, y, axis=a, reduction="add"),
                   lambda x, y, i, a=axis: x.scatter_add(a, i, y))  # fmt: skip
        yield Case(f"scatter {axis}", [x, f32(*x.shape)], [np.argsort(f32(*x.shape), axis)],
                   lambda x, y, i, a=axis: op("ScatterElements", x, i, y, axis=a),
                   lambda x, y, i, a=axis: x.scatter(a, i, y))  # fmt: skip
        yield Case(f"concat {axis}", [x, f32(*x.shape)], [],
                   lambda x, y, a=axis: tn.concat([x, y], a) * 2,
                   lambda x, y, a=axis: torch.cat([x, y], a) * 2)  # fmt: skip
        yield Case(f"stack {axis}", [x, f32(*x.shape)], [],
                   lambda x, y, a=axis: tn.stack([x, y], a) * 2,
                   lambda x, y, a=axis: torch.stack([x, y], a) * 2)  # fmt: skip
        yield Case(f"split {axis}", [x], [],
                   lambda x, a=axis: tn.multiply(*tn.split(x, 2, a)),
                   lambda x, a=axis: torch.mul(*x.chunk(2, a)))  # fmt: skip
        yield Case(f"repeat {axis}", [x], [], lambda x, a=axis: tn.repeat(x, 3, a),
                   lambda x, a=axis: x.repeat_interleave(3, a))  # fmt: skip
        yield Case(f"every second {axis}", [x], [],
                   lambda x, a=axis: x[(slice(None),) * a + (slice(None, None, 2),)],
                   lambda x, a=axis: x[(slice(None),) * a + (slice(None, None, 2),)])  # fmt: skip
    yield Case("index_add", [f32(1000, 128), f32(20000, 128)], [whole(1000, 20000)],
               lambda x, y, i: x.at[i].add(y), lambda x, y, i: x.index_add(0, i, y))  # fmt: skip
    yield Case("pairs of indices", [f32(500, 500)], [whole(500, 20000), whole(500, 20000)],
               lambda x, i, j: x[i, j], lambda x, i, j: x[i, j])  # fmt: skip
    yield Case("tile", [f32(64, 128)], [], lambda x: tn.tile(x, (16, 4)), lambda x: x.tile(16, 4))
    yield Case("transpose", [f32(64, 128, 96)], [], lambda x: tn.permute_dims(x, (2, 0, 1)) * 2,
               lambda x: x.permute(2, 0, 1).contiguous() * 2)  # fmt: skip
    yield Case("tril", [f32(32, 256, 256)], [], tn.tril, torch.tril)
    yield Case("diagonal", [f32(32, 256, 256)], [], tn.linalg.diagonal,
               lambda x: x.diagonal(dim1=-2, dim2=-1))  # fmt: skip
    image = f32(4, 32, 56, 56)
    ends = [(0, 0), (0, 0), (3, 3), (3, 3)]
    for ours, theirs in [("constant", "constant"), ("reflect", "reflect"), ("edge", "replicate"),
                         ("wrap", "circular")]:  # fmt: skip
        yield Case(f"pad {ours}", [image], [], lambda x, m=ours: tn.pad(x, ends, m),
                   lambda x, m=theirs: F.pad(x, (3, 3, 3, 3), m))  # fmt: skip
    for mode, theirs in [("nearest", "nearest"), ("linear", "bilinear"), ("cubic", "bicubic")]:
        for scale in (0.5, 2, 1.5):
            rule = "asymmetric" if mode == "nearest" else "half_pixel"
            a = {"mode": mode, "coordinate_transformation_mode": rule, "cubic_coeff_a": -0.75}
            a |= {"nearest_mode": "floor"} if mode == "nearest" else {}
            yield Case(
                f"interpolate {mode} {scale}",
                [image],
                [],
                lambda x, a=a, s=scale: op("Resize", x, None, np.array([1, 1, s, s], "f"), **a),
                lambda x, s=scale, m=theirs: F.interpolate(x, scale_factor=s, mode=m),
            )
    grid = f32(4, 56, 56, 2) * 0.5
    yield Case("grid_sample", [image, grid], [], lambda x, g: op("GridSample", x, g),
               lambda x, g: F.grid_sample(x, g, align_corners=False))  # fmt: skip
    yield Case("pixel_shuffle", [image], [],
               lambda x: op("DepthToSpace", x, blocksize=2, mode="CRD"),
               lambda x: F.pixel_shuffle(x, 2))  # fmt: skip


def products() -> Iterator[Case]:
    for a, b in [
        ((128, 384), (384, 384)),
        ((16, 128, 384), (384, 1536)),
        ((64, 3, 3), (64, 3, 3)),
        ((2000, 4, 4), (2000, 4, 4)),
        ((100000, 3), (3, 3)),
        ((3, 100000), (100000, 3)),
        ((1, 768), (768, 3072)),
        ((1000, 1000), (1000,)),
        ((32, 1, 64), (32, 64, 512)),
        ((8, 12, 128, 64), (8, 12, 64, 128)),
        ((32, 64, 64), (64, 64)),
        ((64, 64), (32, 64, 64)),
        ((129, 257), (257, 65)),
        ((1000, 1), (1, 1000)),
    ]:
        yield Case(f"matmul {a} {b}", [f32(*a), f32(*b)], [], tn.matmul, torch.matmul)
    for equation, *shapes in [
        ("bid,bjd->bij", (16, 128, 64), (16, 128, 64)), ("bij,bj->bi", (32, 64, 64), (32, 64)),
        ("bhqd,bhkd->bhqk", (4, 8, 128, 64), (4, 8, 128, 64)), ("i,j->ij", (1000,), (1000,)),
        ("bi,ijk,bj->bk", (64, 32), (32, 32, 32), (64, 32)), ("bqhd,bkhd->bhqk", (4, 128, 8, 64),
         (4, 128, 8, 64)), ("nctv,vw->nctw", (8, 64, 50, 25), (25, 25)), ("ii->i", (1000, 1000)),
        ("bij->bji", (32, 128, 128)), ("bi,bi->b", (10000, 64), (10000, 64)),
        ("bchw,c->bhw", (8, 64, 28, 28), (64,)),
        ("abc,cd,de->abe", (16, 64, 64), (64, 32), (32, 64)),
    ]:  # fmt: skip
        yield Case(f"einsum {equation}", [f32(*one) for one in shapes], [],
                   lambda *x, e=equation: tn.einsum(e, *x),
                   lambda *x, e=equation: torch.einsum(e, *x))  # fmt: skip
    x = f32(500, 16)
    yield Case("distances", [x, f32(500, 16)], [],
               lambda x, y: tn.sqrt(tn.sum((x[:, None] - y[None]) ** 2, axis=-1)),
               lambda x, y: ((x[:, None] - y[None]) ** 2).sum(-1).sqrt())  # fmt: skip
    yield Case("bilinear", [f32(256, 32), f32(256, 32), f32(16, 32, 32)], [],
               lambda x, y, w: tn.einsum("bi,oij,bj->bo", x, w, y), F.bilinear)  # fmt: skip
    for heads, n, m, causal in [(8, 128, 128, 0), (8, 128, 128, 1), (8, 512, 512, 1),
                                (8, 1, 512, 0), (8, 128, 37, 0)]:  # fmt: skip
        shapes = [(4, heads, n, 64), (4, heads, m, 64), (4, heads, m, 64)]
        yield Case(f"attention {n}x{m} causal {causal}", [f32(*one) for one in shapes], [],
                   lambda q, k, v, c=causal: op("Attention", q, k, v, is_causal=c),
                   lambda q, k, v, c=causal: F.scaled_dot_product_attention(
                       q, k, v, is_causal=bool(c)))  # fmt: skip
    mask = f32(4, 1, 128, 128)
    yield Case("attention with a bias", [f32(4, 8, 128, 64) for _ in range(3)] + [mask], [],
               lambda q, k, v, m: op("Attention", q, k, v, m),
               lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m))  # fmt: skip
    spd = f32(64, 64)
    spd = spd @ spd.T + 64 * np.eye(64, dtype="f")
    for name in ("cholesky", "inv", "det"):
        yield Case(name, [spd / 64], [], getattr(tn.linalg, name), getattr(torch.linalg, name))
    yield Case("solve", [spd, f32(64, 8)], [], tn.linalg.solve, torch.linalg.solve)


def losses() -> Iterator[Case]:
    for n, classes in [(128, 10), (4096, 10), (256, 1000), (64, 30000)]:
        x, y = f32(n, classes), whole(classes, n)
        yield Case(f"cross entropy {n}x{classes}", [x], [y],
                   lambda x, y: op("SoftmaxCrossEntropyLoss", x, y), F.cross_entropy)  # fmt: skip
        yield Case(f"cross entropy by take {n}x{classes}", [x], [y],
                   lambda x, y: -tn.mean(tn.take_along_axis(tn.log_softmax(x), y[:, None], 1)),
                   F.cross_entropy)  # fmt: skip
    x, y = f32(4, 21, 64, 64), whole(21, 4, 64, 64)
    yield Case("cross entropy of pixels", [x], [y],
               lambda x, y: op("SoftmaxCrossEntropyLoss", x, y), F.cross_entropy)  # fmt: skip
    x, y = f32(256, 1000), rng_unit(256, 1000)
    yield Case("bce with logits", [x], [y],
               lambda x, y: tn.mean(tn.softplus(x) - x * y),
               F.binary_cross_entropy_with_logits)  # fmt: skip
    yield Case("mse", [x], [y], lambda x, y: tn.mean((x - y) ** 2), F.mse_loss)
    yield Case("l1", [x], [y], lambda x, y: tn.mean(tn.abs(x - y)), F.l1_loss)
    yield Case("cosine similarity", [x, y], [],
               lambda x, y: tn.sum(x * y, axis=1) / (tn.linalg.vector_norm(x, axis=1)
                                                     * tn.linalg.vector_norm(y, axis=1)),
               F.cosine_similarity)  # fmt: skip
    yield Case("kl", [x], [y], lambda x, y: tn.sum(y * (tn.log(y) - tn.log_softmax(x))) / 256,
               lambda x, y: F.kl_div(F.log_softmax(x, 1), y, reduction="batchmean"))  # fmt: skip
    x, y = f32(50, 16, 80), whole(79, 16, 20) + 1
    lengths = [np.full(16, 50), np.full(16, 20)]
    yield Case(
        "ctc",
        [np.ascontiguousarray(x.transpose(1, 0, 2))],
        [y, *lengths],
        lambda x, y, a, b: tn.mean(op("tenon.CtcLoss", x, y) / 20.0),
        lambda x, y, a, b: F.ctc_loss(F.log_softmax(x, 2).transpose(0, 1), y, a, b),
    )


def rng_unit(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).random(shape).astype("f") * 0.9 + 0.05


class First(torch.nn.Module):
    """The first result of a layer that has several."""

    def __init__(self, inner: torch.nn.Module, times: int = 1) -> None:
        super().__init__()
        self.inner, self.times = inner, times

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(*[x] * self.times)[0]


def layers() -> Iterator[Case]:
    t = torch.nn
    for name, ours, theirs, x in [
        ("Linear", nn.Linear(384), t.Linear(384, 384), (16, 128, 384)),
        ("Linear of one", nn.Linear(1), t.Linear(384, 1), (16, 128, 384)),
        ("Conv", nn.Conv(64, 3, padding=1), t.Conv2d(32, 64, 3, padding=1), (4, 32, 28, 28)),
        ("BatchNorm", nn.BatchNorm(), t.BatchNorm2d(64), (8, 64, 28, 28)),
        ("LayerNorm", nn.LayerNorm(), t.LayerNorm(384), (16, 128, 384)),
        ("GroupNorm", nn.GroupNorm(8), t.GroupNorm(8, 64), (8, 64, 28, 28)),
        ("RMSNorm", nn.RMSNorm(), t.RMSNorm(384), (16, 128, 384)),
        ("LSTM", nn.LSTM(128), First(t.LSTM(64, 128, batch_first=True)), (16, 50, 64)),
        ("LSTM of one", nn.LSTM(128), First(t.LSTM(64, 128, batch_first=True)), (1, 100, 64)),
        ("LSTM both ways", nn.LSTM(64, bidirectional=True),
         First(t.LSTM(64, 64, batch_first=True, bidirectional=True)), (16, 50, 64)),
        ("GRU", nn.GRU(128), First(t.GRU(64, 128, batch_first=True)), (16, 50, 64)),
        ("GRU of 2", nn.GRU(64, layers=2), First(t.GRU(64, 64, 2, batch_first=True)), (16, 50, 64)),
        ("MultiHeadAttention", nn.MultiHeadAttention(8),
         First(t.MultiheadAttention(256, 8, batch_first=True), 3), (8, 100, 256)),
        ("Residual", nn.Sequential(nn.Conv(32, 1, bias=False), nn.BatchNorm(), tn.relu),
         t.Sequential(t.Conv2d(32, 32, 1, bias=False), t.BatchNorm2d(32), t.ReLU()),
         (8, 32, 28, 28)),
    ]:  # fmt: skip
        model = nn.build(ours, {"x": x})
        names = sorted(model.parameters())

        def run(x, *weights, model=model, names=names):
            return model(x, parameters=dict(zip(names, weights)), training=True)

        yield Case(f"nn.{name}", [f32(*x), *(model.parameters()[one] for one in names)], [],
                   run, lambda x, *w, module=theirs: module(x))  # fmt: skip
    x, w, r = f32(50, 16, 64), f32(1, 128, 64) * 0.1, f32(1, 128, 128) * 0.1
    yield Case("RNN", [x, w, r], [], 
               lambda x, w, r: tn.squeeze(op("RNN", x, w, r, hidden_size=128, outputs=2)[0], 1),
               lambda x, w, r: torch.rnn_tanh(x, x.new_zeros(1, 16, 128),
                                              [w[0], r[0], w.new_zeros(128), w.new_zeros(128)],
                                              True, 1, 0.0, True, False, False)[0])  # fmt: skip
