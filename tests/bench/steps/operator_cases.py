# SPDX-License-Identifier: Apache-2.0
"""Small functions, once for Tenon and once for PyTorch: what operators.py differentiates.

A case has arrays that are differentiated, further data, and the function in each library; the
harness makes a number of its result, a sum with random weights.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import tenon as tn
import torch
import torch.nn.functional as F  # noqa: N812

rng = np.random.default_rng(0)
op = tn.op


class Case(NamedTuple):
    name: str
    wrt: list[np.ndarray]
    data: list[np.ndarray]
    ours: Callable[..., Any]
    theirs: Callable[..., Any]


def f32(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype("float32")


def whole(high: int, *shape: int) -> np.ndarray:
    return rng.integers(0, high, shape)


def activations() -> Iterator[Case]:
    x = f32(16, 128, 384)
    same = "relu relu6 sigmoid tanh silu gelu softplus exp erf sin cos tan asinh atan expm1 abs"
    for name in [*same.split(), "square", "sinh", "cosh"]:
        theirs = getattr(torch, name, None) or getattr(F, name)
        yield Case(name, [x], [], getattr(tn, name), theirs)
    for name in "sqrt rsqrt log log1p log2 lgamma digamma reciprocal".split():
        yield Case(name, [np.abs(x) + 0.1], [], getattr(tn, name), getattr(torch, name))
    for ours, theirs in [
        ("Elu", F.elu), ("Selu", F.selu), ("Mish", F.mish), ("HardSwish", F.hardswish),
        ("HardSigmoid", lambda x: torch.clamp(x * 0.2 + 0.5, 0, 1)), ("Softsign", F.softsign),
        ("Celu", F.celu),
    ]:  # fmt: skip
        yield Case(ours, [x], [], lambda x, ours=ours: op(ours, x), theirs)
    yield Case("LeakyRelu", [x], [], lambda x: op("LeakyRelu", x, alpha=0.01), F.leaky_relu)
    tanh = {"approximate": "tanh"}
    yield Case("gelu, tanh", [x], [], lambda x: op("Gelu", x, **tanh), lambda x: F.gelu(x, **tanh))
    for shape in [(384,), (128, 1)]:
        for name in "add subtract multiply divide maximum minimum".split():
            yield Case(f"{name} {shape}", [x, np.abs(f32(*shape)) + 1], [], getattr(tn, name),
                       getattr(torch, name))  # fmt: skip
    slope = np.abs(f32(64, 1, 1))
    image = f32(4, 64, 56, 56)
    yield Case("PRelu", [image, slope], [], lambda x, s: op("PRelu", x, s),
               lambda x, s: F.prelu(x, s.flatten()))  # fmt: skip
    yield Case("pow, a number", [np.abs(x)], [], lambda x: x**1.7, lambda x: x**1.7)
    yield Case("pow, an array", [np.abs(x) + 0.1, f32(384)], [], tn.pow, torch.pow)
    yield Case("clip", [x], [], lambda x: tn.clip(x, -1, 1), lambda x: torch.clamp(x, -1, 1))
    yield Case("where", [x, f32(*x.shape)], [x > 0], lambda a, b, c: tn.where(c, a, b),
               lambda a, b, c: torch.where(c, a, b))  # fmt: skip
    yield Case("atan2", [x, f32(*x.shape)], [], tn.atan2, torch.atan2)
    yield Case("logaddexp", [x, f32(*x.shape)], [], tn.logaddexp, torch.logaddexp)
    yield Case("hypot", [x, f32(*x.shape)], [], tn.hypot, torch.hypot)
    yield Case("remainder", [x], [], lambda x: x % 0.7, lambda x: torch.remainder(x, 0.7))
    yield Case(
        "dropout", [x], [], lambda x: tn.dropout(x, 0.1, [0, 1]), lambda x: F.dropout(x, 0.1)
    )
    yield Case("glu", [x], [], lambda x: x[..., :192] * tn.sigmoid(x[..., 192:]), F.glu)


def rows() -> Iterator[Case]:
    shapes = [((16, 128, 384), 0), ((16, 128, 384), 1), ((16, 128, 384), 2), ((100000, 4), 1),
              ((100000, 4), 0), ((4, 100000), 1)]  # fmt: skip
    both = [
        ("softmax", lambda x, a: tn.softmax(x, a), lambda x, a: torch.softmax(x, a)),
        ("log_softmax", lambda x, a: tn.log_softmax(x, a), lambda x, a: torch.log_softmax(x, a)),
        ("sum", lambda x, a: tn.sum(x, a), lambda x, a: x.sum(a)),
        ("mean", lambda x, a: tn.mean(x, a), lambda x, a: x.mean(a)),
        ("max", lambda x, a: tn.max(x, a), lambda x, a: x.amax(a)),
        ("prod", lambda x, a: tn.prod(x, a), lambda x, a: x.prod(a)),
        ("logsumexp", lambda x, a: tn.logsumexp(x, a), lambda x, a: x.logsumexp(a)),
        ("std", lambda x, a: tn.std(x, a), lambda x, a: x.std(a, correction=0)),
        ("norm", lambda x, a: tn.linalg.vector_norm(x, axis=a), lambda x, a: x.norm(dim=a)),
        ("L1 norm", lambda x, a: tn.linalg.vector_norm(x, axis=a, ord=1),
         lambda x, a: x.norm(1, dim=a)),
        ("cumulative sum", lambda x, a: tn.cumulative_sum(x, a), lambda x, a: x.cumsum(a)),
        ("cumulative product", lambda x, a: tn.cumulative_prod(x, a), lambda x, a: x.cumprod(a)),
        ("sort", lambda x, a: tn.sort(x, a), lambda x, a: x.sort(a)[0]),
        ("top_k of 5", lambda x, a: tn.top_k(x, min(5, x.shape[a]), a)[0],
         lambda x, a: x.topk(min(5, x.shape[a]), a)[0]),
        ("median", lambda x, a: tn.median(x, a), lambda x, a: x.quantile(0.5, dim=a)),
        ("flip", lambda x, a: tn.flip(x, a), lambda x, a: x.flip(a)),
        ("roll", lambda x, a: tn.roll(x, 3, a), lambda x, a: x.roll(3, a)),
        ("diff", lambda x, a: tn.diff(x, a), lambda x, a: x.diff(dim=a)),
        ("LpNormalization", lambda x, a: op("LpNormalization", x, axis=a),
         lambda x, a: F.normalize(x, dim=a)),
    ]  # fmt: skip
    for name, ours, theirs in both:
        for shape, axis in shapes:
            x = f32(*shape) * (0.01 if "prod" in name else 1) + ("prod" in name)
            yield Case(
                f"{name} {shape} axis {axis}",
                [x],
                [],
                lambda x, a=axis, f=ours: f(x, a),
                lambda x, a=axis, f=theirs: f(x, a),
            )


def norms() -> Iterator[Case]:
    for c, s in [(16, 64), (64, 56), (512, 7), (3, 112)]:
        x, w, b = f32(4, c, s, s), f32(c), f32(c)
        name = f"4x{c}x{s}x{s}"
        yield Case(f"batch_norm {name}", [x, w, b], [np.zeros(c, "f"), np.ones(c, "f")],
                   lambda x, w, b, m, v: op("BatchNormalization", x, w, b, m, v, outputs=3,
                                            training_mode=1)[0],
                   lambda x, w, b, m, v: F.batch_norm(x, None, None, w, b, True))  # fmt: skip
        yield Case(f"instance_norm {name}", [x, w, b], [],
                   lambda x, w, b: op("InstanceNormalization", x, w, b),
                   lambda x, w, b: F.instance_norm(x, weight=w, bias=b))  # fmt: skip
        for groups in {1, min(8, c) if c % 8 == 0 else c}:
            yield Case(f"group_norm {name} of {groups}", [x, w, b], [],
                       lambda x, w, b, g=groups: op("GroupNormalization", x, w, b, num_groups=g),
                       lambda x, w, b, g=groups: F.group_norm(x, g, w, b))  # fmt: skip
    yield Case("batch_norm 4096x256", [f32(4096, 256), f32(256), f32(256)],
               [np.zeros(256, "f"), np.ones(256, "f")],
               lambda x, w, b, m, v: op("BatchNormalization", x, w, b, m, v, outputs=3,
                                        training_mode=1)[0],
               lambda x, w, b, m, v: F.batch_norm(x, None, None, w, b, True))  # fmt: skip
    for shape in [(16, 128, 384), (65536, 16), (100000, 3), (8, 65536)]:
        n = shape[-1]
        x, w, b = f32(*shape), f32(n), f32(n)
        yield Case(f"layer_norm {shape}", [x, w, b], [], tn.layer_norm,
                   lambda x, w, b, n=n: F.layer_norm(x, (n,), w, b))  # fmt: skip
        yield Case(f"rms_norm {shape}", [x, w], [],
                   lambda x, w: op("RMSNormalization", x, w, axis=-1),
                   lambda x, w, n=n: F.rms_norm(x, (n,), w, 1e-5))  # fmt: skip
    yield Case("layer_norm over two axes", [f32(64, 32, 96), f32(32, 96), f32(32, 96)], [],
               lambda x, w, b: op("LayerNormalization", x, w, b, axis=1),
               lambda x, w, b: F.layer_norm(x, (32, 96), w, b))  # fmt: skip
    yield Case("LRN", [f32(4, 64, 28, 28)], [], lambda x: op("LRN", x, size=5),
               lambda x: F.local_response_norm(x, 5))  # fmt: skip


def pools() -> Iterator[Case]:
    for c, s in [(64, 56), (256, 14)]:
        x = f32(4, c, s, s)
        for k, t, p in [(2, 2, 0), (3, 2, 1), (3, 1, 1), (5, 3, 0), (7, 7, 0)]:
            a = {"kernel_shape": [k, k], "strides": [t, t], "pads": [p] * 4}
            yield Case(f"max_pool {c}x{s} {k},{t},{p}", [x], [],
                       lambda x, a=a: op("MaxPool", x, **a),
                       lambda x, k=k, t=t, p=p: F.max_pool2d(x, k, t, p))  # fmt: skip
            yield Case(f"avg_pool {c}x{s} {k},{t},{p}", [x], [],
                       lambda x, a=a: op("AveragePool", x, count_include_pad=1, **a),
                       lambda x, k=k, t=t, p=p: F.avg_pool2d(x, k, t, p))  # fmt: skip
        a = {"kernel_shape": [3, 3], "strides": [2, 2]}
        yield Case(f"max_pool dilated {c}x{s}", [x], [],
                   lambda x, a=a: op("MaxPool", x, dilations=[2, 2], **a),
                   lambda x: F.max_pool2d(x, 3, 2, 0, 2))  # fmt: skip
        yield Case(f"max_pool ceil {c}x{s}", [x], [],
                   lambda x, a=a: op("MaxPool", x, ceil_mode=1, **a),
                   lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True))  # fmt: skip
        yield Case(
            f"avg_pool ceil {c}x{s}",
            [x],
            [],
            lambda x, a=a: op("AveragePool", x, ceil_mode=1, **a),
            lambda x: F.avg_pool2d(x, 3, 2, ceil_mode=True, count_include_pad=False),
        )
        yield Case(f"global avg_pool {c}x{s}", [x], [], lambda x: op("GlobalAveragePool", x),
                   lambda x: F.adaptive_avg_pool2d(x, 1))  # fmt: skip
        yield Case(f"global max_pool {c}x{s}", [x], [], lambda x: op("GlobalMaxPool", x),
                   lambda x: F.adaptive_max_pool2d(x, 1))  # fmt: skip
        a = {"kernel_shape": [3, 3], "strides": [2, 2], "p": 2}
        yield Case(f"LpPool {c}x{s}", [x], [], lambda x, a=a: op("LpPool", x, **a),
                   lambda x: F.lp_pool2d(x, 2, 3, 2))  # fmt: skip
    x = f32(8, 64, 1000)
    yield Case("max_pool 1-D", [x], [], lambda x: tn.max_pool(x, 4), lambda x: F.max_pool1d(x, 4))
    yield Case("avg_pool 1-D", [x], [], lambda x: tn.avg_pool(x, 4), lambda x: F.avg_pool1d(x, 4))
    x = f32(2, 32, 16, 28, 28)
    yield Case("max_pool 3-D", [x], [], lambda x: tn.max_pool(x, 2), lambda x: F.max_pool3d(x, 2))
    yield Case("avg_pool 3-D", [x], [], lambda x: tn.avg_pool(x, 2), lambda x: F.avg_pool3d(x, 2))


def convolutions() -> Iterator[Case]:
    for x, w, more in [
        ((8, 64, 1000), (64, 64, 3), {"padding": 1}),
        ((8, 1, 16000), (64, 1, 400), {"stride": 160}),
        ((8, 256, 1000), (256, 1, 31), {"padding": 15, "groups": 256}),
        ((8, 64, 1000), (64, 64, 3), {"padding": 8, "dilation": 8}),
        ((4, 3, 112, 112), (64, 3, 7, 7), {"stride": 2, "padding": 3}),
        ((4, 64, 28, 28), (64, 64, 3, 3), {"padding": 1}), ((4, 65, 29, 29), (67, 65, 3, 3), {}),
        ((4, 64, 28, 28), (128, 64, 1, 1), {"stride": 2}), ((4, 64, 28, 28), (64, 64, 5, 5), {}),
        ((4, 64, 28, 28), (64, 64, 3, 3), {"padding": 2, "dilation": 2}),
        ((4, 64, 28, 28), (64, 8, 3, 3), {"padding": 1, "groups": 8}),
        ((4, 64, 28, 28), (64, 2, 3, 3), {"padding": 1, "groups": 32}),
        ((4, 96, 56, 56), (96, 1, 3, 3), {"padding": 1, "groups": 96}),
        ((4, 96, 56, 56), (96, 1, 7, 7), {"padding": 3, "groups": 96}),
        ((4, 96, 56, 56), (96, 1, 5, 5), {"stride": 2, "padding": 2, "groups": 96}),
        ((4, 32, 28, 28), (64, 1, 3, 3), {"padding": 1, "groups": 32}),
        ((4, 3, 224, 224), (96, 3, 16, 16), {"stride": 16}),
        ((1, 16, 16, 28, 28), (32, 16, 3, 3, 3), {"padding": 1}),
        ((1, 32, 16, 28, 28), (32, 1, 3, 3, 3), {"padding": 1, "groups": 32}),
    ]:  # fmt: skip
        name = f"conv {'x'.join(map(str, x))} {'x'.join(map(str, w))} {more}"
        theirs = [F.conv1d, F.conv2d, F.conv3d][len(x) - 3]
        yield Case(name, [f32(*x), f32(*w) * 0.05, f32(w[0])], [],
                   lambda x, w, b, m=more: tn.conv(x, w, b, **m),
                   lambda x, w, b, m=more, f=theirs: f(x, w, b, **m))  # fmt: skip
    for x, w, stride, groups in [
        ((8, 64, 250), (64, 32, 4), 2, 1), ((4, 64, 28, 28), (64, 32, 2, 2), 2, 1),
        ((4, 64, 28, 28), (64, 32, 4, 4), 2, 1), ((4, 64, 28, 28), (64, 1, 4, 4), 2, 64),
        ((4, 64, 28, 28), (64, 64, 3, 3), 1, 1), ((1, 16, 8, 14, 14), (16, 16, 2, 2, 2), 2, 1),
    ]:  # fmt: skip
        theirs = [F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d][len(x) - 3]
        yield Case(
            f"conv_transpose {x} {w} of {stride}",
            [f32(*x), f32(*w) * 0.05],
            [],
            lambda x, w, s=stride, g=groups: op(
                "ConvTranspose", x, w, group=g, strides=[s] * (len(x.shape) - 2)
            ),
            lambda x, w, s=stride, g=groups, f=theirs: f(x, w, stride=s, groups=g),
        )
