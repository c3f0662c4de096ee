# SPDX-License-Identifier: Apache-2.0
"""Parts of networks and losses for operators.py, as their authors write them."""

from collections.abc import Iterator

import numpy as np
import tenon as tn
import torch
import torch.nn.functional as F  # noqa: N812
from operator_cases import Case, f32, op, whole


def images() -> Iterator[Case]:
    for x, w, stride, pad, groups in [
        ((4, 64, 28, 28), (64, 1, 4, 4), 2, 0, 64), ((4, 64, 28, 28), (64, 32, 4, 4), 2, 1, 1),
        ((4, 21, 14, 14), (21, 1, 16, 16), 8, 4, 21), ((4, 64, 28, 28), (64, 16, 4, 4), 2, 0, 4),
        ((64, 100, 1, 1), (100, 256, 4, 4), 1, 0, 1), ((4, 32, 56, 56), (32, 3, 2, 2), 2, 0, 1),
    ]:  # fmt: skip
        ours = {"group": groups, "strides": [stride] * 2, "pads": [pad] * 4}
        theirs = {"groups": groups, "stride": stride, "padding": pad}
        yield Case(f"conv_transpose, bias, relu {x} {w} {theirs}",
                   [f32(*x), f32(*w) * 0.05, f32(w[1] * groups)], [],
                   lambda x, w, b, a=ours: tn.relu(op("ConvTranspose", x, w, b, **a)),
                   lambda x, w, b, a=theirs: F.conv_transpose2d(x, w, b, **a).relu())  # fmt: skip
    for x, w, more in [
        ((4, 64, 28, 28), (64, 64, 3, 3), {"padding": 12, "dilation": 12}),
        ((4, 64, 28, 28), (64, 64, 1, 7), {"padding": (0, 3)}),
        ((4, 64, 28, 28), (64, 1, 3, 3), {"padding": 2, "groups": 64, "dilation": 2}),
        ((4, 64, 28, 28), (64, 1, 31, 31), {"padding": 15, "groups": 64}),
        ((4, 48, 56, 56), (3, 48, 9, 9), {"padding": 4}),
        ((4, 16, 64, 64), (1, 16, 1, 1), {}),
    ]:
        yield Case(f"conv {x} {w} {more}", [f32(*x), f32(*w) * 0.05, f32(w[0])], [],
                   lambda x, w, b, m=more: tn.conv(x, w, b, **m),
                   lambda x, w, b, m=more: F.conv2d(x, w, b, **m))  # fmt: skip
    x, pixels = f32(8, 96, 28, 28), f32(8, 56, 56, 96)
    yield Case("squeeze and excite", [x, f32(96, 24) * 0.1, f32(24, 96) * 0.1], [],
               lambda x, a, b: x * tn.sigmoid(tn.relu(tn.mean(x, (2, 3)) @ a) @ b)[..., None, None],
               lambda x, a, b: x * torch.sigmoid((x.mean((2, 3)) @ a).relu() @ b)[
                   ..., None, None])  # fmt: skip
    yield Case("windows", [pixels], [],
               lambda x: tn.permute_dims(tn.reshape(x, (8, 8, 7, 8, 7, 96)),
                                         (0, 1, 3, 2, 4, 5)) * 2,
               lambda x: x.reshape(8, 8, 7, 8, 7, 96).permute(0, 1, 3, 2, 4, 5).contiguous()
               * 2)  # fmt: skip
    yield Case("cyclic shift", [pixels], [], lambda x: tn.roll(x, (-3, -3), (1, 2)),
               lambda x: x.roll((-3, -3), (1, 2)))  # fmt: skip
    patches = [np.s_[:, i::2, j::2] for j in (0, 1) for i in (0, 1)]
    yield Case("patch merging", [pixels], [],
               lambda x: tn.concat([x[p] for p in patches], -1) * 2,
               lambda x: torch.cat([x[p] for p in patches], -1) * 2)  # fmt: skip
    yield Case("layer norm of channels", [x, f32(96), f32(96)], [],
               lambda x, w, b: tn.permute_dims(tn.layer_norm(tn.permute_dims(x, (0, 2, 3, 1)), w,
                                                             b), (0, 3, 1, 2)),
               lambda x, w, b: F.layer_norm(x.permute(0, 2, 3, 1), (96,), w, b).permute(
                   0, 3, 1, 2))  # fmt: skip
    yield Case("mirrored", [f32(16, 3, 64, 64)], [], lambda x: tn.flip(x, 3),
               lambda x: x.flip(3))  # fmt: skip


def tokens() -> Iterator[Case]:
    q, k, v, turn = (f32(4, 8, 128, 64) for _ in range(4))
    yield Case("rope", [q], [turn[0, 0], turn[1, 0]],
               lambda x, c, s: x * c + tn.concat([-x[..., 32:], x[..., :32]], -1) * s,
               lambda x, c, s: x * c + torch.cat([-x[..., 32:], x[..., :32]], -1) * s)  # fmt: skip
    yield Case("rope of pairs", [q], [],
               lambda x: tn.stack([x[..., ::2] - x[..., 1::2], x[..., ::2] + x[..., 1::2]], -1),
               lambda x: torch.stack([x[..., ::2] - x[..., 1::2], x[..., ::2] + x[..., 1::2]],
                                     -1))  # fmt: skip
    yield Case("attention with a trained bias", [q, k, v, f32(8, 128, 128)], [],
               lambda q, k, v, b: tn.softmax(q @ tn.matrix_transpose(k) * 0.125 + b) @ v,
               lambda q, k, v, b: (q @ k.mT * 0.125 + b).softmax(-1) @ v)  # fmt: skip
    yield Case("grouped-query attention", [q, f32(4, 2, 128, 64), f32(4, 2, 128, 64)], [],
               lambda q, k, v: op("Attention", q, k, v),
               lambda q, k, v: F.scaled_dot_product_attention(
                   q, k, v, enable_gqa=True))  # fmt: skip
    yield Case("relative positions", [f32(169, 3)], [whole(169, 49, 49)],
               lambda t, i: tn.permute_dims(tn.take(t, i), (2, 0, 1)),
               lambda t, i: t[i].permute(2, 0, 1))  # fmt: skip
    x = f32(8, 128, 256)
    yield Case("swiglu", [x, *(f32(256, 512) * 0.06 for _ in range(2)), f32(512, 256) * 0.06], [],
               lambda x, a, b, c: (tn.silu(x @ a) * (x @ b)) @ c,
               lambda x, a, b, c: (F.silu(x @ a) * (x @ b)) @ c)  # fmt: skip
    for a, b in [((100000, 64), (64,)), ((1000,), (1000, 1000)), ((16, 128, 384), (384,)),
                 ((64, 128, 64), (64, 64, 1)), ((4096, 256), (256, 10)), ((65536, 3), (3, 64)),
                 ((8, 1024, 16), (8, 16, 16)), ((65536, 64), (64, 2))]:  # fmt: skip
        yield Case(f"product {a} {b}", [f32(*a), f32(*b)], [], tn.matmul, torch.matmul)
    kept = np.abs(f32(4096, 64)) * 0.05
    yield Case("transmittance", [kept], [], lambda s: tn.cumulative_prod(tn.exp(-s), axis=1),
               lambda s: torch.exp(-s).cumprod(1))  # fmt: skip
    yield Case("routing", [f32(2048, 16)], [], lambda x: tn.softmax(tn.top_k(x, 2)[0]),
               lambda x: x.topk(2)[0].softmax(-1))  # fmt: skip
    yield Case("neighbours", [f32(2048, 64)], [whole(2048, 2048, 16)],
               lambda x, i: tn.max(tn.take(x, i) - x[:, None], 1),
               lambda x, i: (x[i] - x[:, None]).amax(1))  # fmt: skip
    yield Case("messages", [f32(2000, 64)], [whole(2000, 20000), whole(2000, 20000)],
               lambda x, i, j: tn.zeros((2000, 64)).at[j].add(tn.take(x, i)),
               lambda x, i, j: torch.zeros(2000, 64).index_add(0, j, x[i]))  # fmt: skip
    yield Case("unrolled steps", [f32(16, 50, 256)], [], lambda x: _unrolled(x, tn),
               lambda x: _unrolled(x, torch))  # fmt: skip


def _unrolled(x, lib):
    state = 0
    for i in range(50):
        state = lib.tanh(state * 0.5 + x[:, i])
    return state


def targets() -> Iterator[Case]:
    x, y = f32(4096, 100), whole(100, 4096)
    yield Case("weighed cross entropy", [x], [y, np.abs(f32(100))],
               lambda x, y, w: op("SoftmaxCrossEntropyLoss", x, y, w),
               lambda x, y, w: F.cross_entropy(x, y, w))  # fmt: skip
    x, y = f32(64, 4096), f32(64, 4096)
    yield Case("smooth l1", [x], [y],
               lambda x, y: tn.mean(tn.where(tn.abs(x - y) < 1, 0.5 * (x - y) ** 2,
                                             tn.abs(x - y) - 0.5)), F.smooth_l1_loss)  # fmt: skip
    yield Case("dice", [x], [(y > 1).astype("f")],
               lambda x, t: tn.sum(tn.sigmoid(x) * t) / (tn.sum(tn.sigmoid(x)) + tn.sum(t)),
               lambda x, t: (x.sigmoid() * t).sum() / (x.sigmoid().sum() + t.sum()))  # fmt: skip
    a, b = f32(512, 128), f32(512, 128)
    yield Case("contrastive", [a, b], [np.arange(512)],
               lambda a, b, y: op("SoftmaxCrossEntropyLoss",
                                  a / tn.linalg.vector_norm(a, axis=1, keepdims=True) @ b.T, y),
               lambda a, b, y: F.cross_entropy(a / a.norm(dim=1, keepdim=True) @ b.T,
                                               y))  # fmt: skip
    yield Case("mixture", [f32(4096, 10) for _ in range(3)], [f32(4096, 1)],
               lambda w, m, s, y: tn.logsumexp(tn.log_softmax(w) - ((y - m) * tn.exp(-s)) ** 2 - s,
                                               1),
               lambda w, m, s, y: (w.log_softmax(1) - ((y - m) * (-s).exp()) ** 2 - s).logsumexp(
                   1))  # fmt: skip
    yield Case("spectral loss", [f32(16, 4096)], [],
               lambda x: tn.sum(tn.fft.rfft(x) ** 2, -1),
               lambda x: torch.view_as_real(torch.fft.rfft(x)).square().sum(-1))  # fmt: skip
    small = f32(1024, 3, 3) * 0.3 + np.eye(3, dtype="f")
    for name, x in [("det", small), ("inv", small), ("det", f32(4, 32, 32) * 0.2)]:
        yield Case(f"{name} of {x.shape}", [x], [], getattr(tn.linalg, name),
                   getattr(torch.linalg, name))  # fmt: skip
    for n in (64, 256):
        yield Case(f"slogdet of {n}", [f32(n, n)], [], lambda x: tn.linalg.slogdet(x)[1],
                   lambda x: torch.linalg.slogdet(x)[1])  # fmt: skip
    yield Case("erfc", [f32(512, 512)], [], tn.erfc, torch.erfc)
    yield Case("erfinv", [np.tanh(f32(256, 256)) * 0.9], [], tn.erfinv, torch.erfinv)
    yield Case("lgamma of two", [np.abs(a) + 0.5, np.abs(b) + 0.5], [],
               lambda a, b: tn.lgamma(a) + tn.lgamma(b) - tn.lgamma(a + b),
               lambda a, b: a.lgamma() + b.lgamma() - (a + b).lgamma())  # fmt: skip
