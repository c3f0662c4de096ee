# SPDX-License-Identifier: Apache-2.0
"""The functions: each row is a name, the arguments, and a function of a library that builds one.

`m` has the array API (tenon, jax.numpy), `L` the transforms (tenon, jax): what both call alike is
called so, and `L.scan`, `L.fori_loop`, `L.while_loop` are JAX's of jax.lax.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

rng = np.random.default_rng(0)


class Case(NamedTuple):
    name: str
    arguments: tuple[Any, ...]
    build: Callable[[Any, Any], Callable[..., Any]]


def f32(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype("float32")


def whole(high: int, *shape: int, dtype: str = "int32") -> np.ndarray:
    return rng.integers(0, high, shape).astype(dtype)


def definite(n: int) -> np.ndarray:
    a = f32(n, n)
    return a @ a.T + n * np.eye(n, dtype="float32")


X = f32(1000, 1000)
I32 = whole(100, 1000, 1000)
HEADS = (8, 8, 128, 64)

ELEMENTWISE = [
    Case("sin, cos, exp of 8", (f32(8),), lambda m, L: lambda x: m.sin(x) * m.cos(x) + m.exp(-x)),
    Case("exp, log, sqrt", (X,), lambda m, L: lambda x: m.exp(-x * x) + m.log(m.abs(x) + 1)),
    Case("where of log1p, tanh", (X,),
         lambda m, L: lambda x: m.where(x > 0, m.log1p(x), m.tanh(x))),
    Case("sin, cos, tan", (X,), lambda m, L: lambda x: m.sin(x) + m.cos(x) * m.tan(x)),
    Case("power 1.7", (X,), lambda m, L: lambda x: m.abs(x) ** 1.7),
    Case("asinh, atan2", (X, X), lambda m, L: lambda x, y: m.asinh(x) + m.atan2(x, y)),
    Case("float remainder", (X, X), lambda m, L: lambda x, y: x % (y + 3)),
    Case("int32 a * b + a", (I32, I32), lambda m, L: lambda a, b: a * b + a),
    Case("int32 // and %", (I32, I32 + 1), lambda m, L: lambda a, b: a // b + a % b),
    Case("int32 bits", (I32, I32), lambda m, L: lambda a, b: (a & b) ^ (a | b)),
    Case("comparisons", (X, X), lambda m, L: lambda x, y: (x > y) & (x < 2 * y) | (x == y)),
    Case("exp of differences", (f32(2000), f32(2000)),
         lambda m, L: lambda x, y: m.exp(-((x[:, None] - y[None]) ** 2))),
]  # fmt: skip

REDUCTIONS = [
    Case("mean of all", (X,), lambda m, L: lambda x: m.mean(x)),
    Case("sum of squares, axis 0", (f32(2000, 1000),), lambda m, L: lambda x: m.sum(x * x, axis=0)),
    Case("sum of exp(x) x", (X,), lambda m, L: lambda x: m.sum(m.exp(x) * x)),
    Case("mean of squared differences", (f32(4_000_000), f32(4_000_000)),
         lambda m, L: lambda x, y: m.mean((x - y) ** 2)),
    Case("largest of products, axis 1", (X, X), lambda m, L: lambda x, y: m.max(x * y, axis=1)),
    Case("variance, axis 0", (f32(2000, 1000),), lambda m, L: lambda x: m.var(x, axis=0)),
    Case("any, max of clip", (X,),
         lambda m, L: lambda x: m.clip(x, -1.0, 1.0).max() + m.any(x > 3)),
    Case("argmax, axis 0", (X,), lambda m, L: lambda x: m.argmax(x, axis=0)),
    Case("int32 sum, axis 1", (I32,), lambda m, L: lambda x: m.sum(x, axis=1)),
    Case("less the largest of 16", (f32(250_000, 16),),
         lambda m, L: lambda x: x - m.max(x, axis=1, keepdims=True)),
    Case("softmax", (f32(512, 1000),), lambda m, L: lambda x: softmax(m, x)),
    Case("softmax of 10", (f32(100_000, 10),), lambda m, L: lambda x: softmax(m, x)),
    Case("argmax of 10", (f32(100_000, 10),), lambda m, L: lambda x: m.argmax(x, axis=1)),
    Case("norms, axis 0", (X,), lambda m, L: lambda x: m.linalg.vector_norm(x, axis=0)),
    Case("cumulative sum, axis 1", (X,), lambda m, L: lambda x: m.cumulative_sum(x, axis=1)),
    Case("distances 500 x 500 x 16", (f32(500, 16), f32(500, 16)),
         lambda m, L: lambda x, y: m.sqrt(m.sum((x[:, None] - y[None]) ** 2, axis=-1))),
    Case("distances 1000 x 1000 x 8", (f32(1000, 8), f32(1000, 8)),
         lambda m, L: lambda x, y: m.sum(m.abs(x[:, None] - y[None]), axis=-1)),
]  # fmt: skip

MOVES = [
    Case("transpose + 1", (f32(2000, 2000),), lambda m, L: lambda x: m.permute_dims(x, (1, 0)) + 1),
    Case("flip", (X,), lambda m, L: lambda x: m.flip(x, axis=1) + x),
    Case("stencil of slices", (X,), lambda m, L: lambda x: x[1:-1, 1:-1] - 0.25 * (
        x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])),
    Case("stencil in three axes", (f32(100, 100, 100),), lambda m, L: lambda x: around(x)),
    Case("stack, last axis", (f32(1_000_000), f32(1_000_000)),
         lambda m, L: lambda x, y: m.stack([x, y], axis=-1)),
    Case("cross products", (f32(300_000, 3), f32(300_000, 3)),
         lambda m, L: lambda x, y: m.linalg.cross(x, y)),
    Case("take rows", (f32(10_000, 128), whole(10_000, 20_000, dtype="int64")),
         lambda m, L: lambda x, i: m.take(x, i, axis=0)),
    Case("take_along_axis", (X, whole(1000, 1000, 1000, dtype="int64")),
         lambda m, L: lambda x, i: m.take_along_axis(x, i, axis=1)),
    Case("add to rows", (f32(1000, 64), whole(1000, 5000, dtype="int64"), f32(5000, 64)),
         lambda m, L: lambda x, i, new: x.at[i].add(new)),
    Case("segment sums", (f32(100_000), whole(100, 100_000, dtype="int64")), lambda m, L:
         lambda x, i: m.zeros(100, dtype=m.float32).at[i].add(x)),
    Case("sort, axis 1", (X,), lambda m, L: lambda x: m.sort(x, axis=1)),
    Case("searchsorted", (np.sort(f32(10_000)), f32(20_000)),
         lambda m, L: lambda row, x: m.searchsorted(row, x)),
    Case("life 512", (whole(2, 512, 512),), lambda m, L: lambda x: life(m, x)),
]  # fmt: skip

PRODUCTS = [
    Case("x @ x @ x @ x of 256", (f32(256, 256),), lambda m, L: lambda x: x @ x @ x @ x),
    Case("matrix times vector", (X, f32(1000)), lambda m, L: lambda a, x: a @ x),
    Case("500 products of 16", (f32(500, 16, 16), f32(500, 16, 16)),
         lambda m, L: lambda a, b: a @ b),
    Case("einsum of heads", (f32(*HEADS), f32(*HEADS)),
         lambda m, L: lambda q, k: m.einsum("bhqd,bhkd->bhqk", q, k)),
    Case("cholesky 300", (definite(300),), lambda m, L: lambda x: m.linalg.cholesky(x)),
    Case("solve 300", (definite(300), f32(300, 10)),
         lambda m, L: lambda a, b: m.linalg.solve(a, b)),
    Case("singular values 200", (f32(200, 200),), lambda m, L: lambda x: m.linalg.svd(x)[1]),
    Case("k-means, five rounds", (f32(5000, 8), f32(8, 8)),
         lambda m, L: lambda x, c: k_means(m, x, c)),
]  # fmt: skip

WEIGHTS = {
    "w1": f32(64, 256) * 0.1, "b1": f32(256), "w2": f32(256, 256) * 0.1, "b2": f32(256),
    "w3": f32(256, 1) * 0.1,
}  # fmt: skip
TRANSFORMS = [
    Case("gradient of an MLP", (WEIGHTS, f32(128, 64), f32(128, 1)), lambda m, L: L.grad(loss(m))),
    Case("gradient of each example", (WEIGHTS, f32(64, 64), f32(64, 1)),
         lambda m, L: L.vmap(L.grad(loss(m)), in_axes=(None, 0, 0))),
    Case("Hessian times vector", (WEIGHTS, f32(128, 64), f32(128, 1)), lambda m, L: lambda p, x, y:
         L.jvp(lambda q: L.grad(loss(m))(q, x, y), (p,), (p,))[1]),
    Case("Hessian of 60", (f32(60),),
         lambda m, L: L.hessian(lambda x: m.sum(m.sin(x) ** 2) * m.sum(x**3))),
    Case("jacfwd of 50", (f32(50), f32(50, 50)), lambda m, L: L.jacfwd(lambda x, w: m.tanh(w @ x))),
    Case("gradient of attention", (f32(*HEADS), f32(*HEADS), f32(*HEADS)),
         lambda m, L: L.grad(lambda q, k, v: attention(m, q, k, v), argnums=(0, 1, 2))),
    Case("gradient of LayerNorm", (X,), lambda m, L: L.grad(lambda x: m.sum(
        ((x - m.mean(x, axis=1, keepdims=True)) / m.std(x, axis=1, keepdims=True)) ** 3))),
    Case("gradient of a sort", (f32(100, 1000),),
         lambda m, L: L.grad(lambda x: m.sum(m.sort(x, axis=1)[:, :10] ** 2))),
]  # fmt: skip

LOOPS = [
    Case("scan, RNN of 100 steps", (f32(128, 128) * 0.05, f32(64, 128), f32(100, 32, 64)),
         lambda m, L: lambda w, u, xs: recurrent(m, L, w, u, xs)),
    Case("its gradient", (f32(128, 128) * 0.05, f32(64, 128), f32(100, 32, 64)),
         lambda m, L: L.grad(lambda w, u, xs: m.sum(recurrent(m, L, w, u, xs) ** 2))),
    Case("1,000 steps of a pendulum", (f32(16),), lambda m, L: lambda x: pendulum(m, L, x)),
    Case("scan, 100 steps of 8 x 8", (f32(8, 8) * 0.1, f32(100, 8)), lambda m, L: lambda w, xs:
         L.scan(lambda h, x: (w @ h + x,) * 2, m.zeros(8, dtype=m.float32), xs)[1]),
    Case("scan, running maxima", (f32(1000, 64),), lambda m, L: lambda x:
         L.scan(lambda most, row: (m.maximum(most, row),) * 2, x[0], x)[1]),
    Case("500 Runge-Kutta steps of Lorenz", (f32(3),),
         lambda m, L: lambda y: L.fori_loop(0, 500, lambda _, y: runge_kutta(m, y), y)),
    Case("gradient of Runge-Kutta steps", (f32(3),),
         lambda m, L: L.grad(lambda y: m.sum(runge_kutta(m, runge_kutta(m, y)) ** 2))),
    Case("while, 600 rounds", (np.abs(f32(64)),), lambda m, L: lambda x: L.while_loop(
        lambda s: m.sum(s) < 1e4, lambda s: s * 1.01 + 0.01, x)),
]  # fmt: skip

# Of float64, which NumPy's arrays are, and of integers, beside NumPy.
D = rng.standard_normal(1_000_000)
WIDE = rng.integers(0, 1000, 1_000_000)
DOUBLES = [
    Case("exp", (D,), lambda m, L: lambda x: m.exp(x)),
    Case("tanh", (D,), lambda m, L: lambda x: m.tanh(x)),
    Case("sin", (D,), lambda m, L: lambda x: m.sin(x)),
    Case("a cubic polynomial", (D,), lambda m, L: lambda x: ((x * 3 + 1) * x + 2) * x - 1),
    Case("where", (D,), lambda m, L: lambda x: m.where(x > 0, x, 0.1 * x)),
    Case("softmax", (D.reshape(2000, 500),), lambda m, L: lambda x: softmax(m, x)),
    Case("variance, axis 1", (D.reshape(2000, 500),), lambda m, L: lambda x: m.var(x, axis=1)),
    Case("sum", (D,), lambda m, L: lambda x: m.sum(x)),
    Case("any", (D,), lambda m, L: lambda x: m.any(x > 5)),
    Case("distances 300 x 300 x 50", (D[:30_000].reshape(300, 2, 50),), lambda m, L: lambda x:
         m.sqrt(m.sum((x[:, None, 0] - x[None, :, 1]) ** 2, axis=-1))),
    Case("x @ y of 1000", (D.reshape(1000, 1000),) * 2, lambda m, L: lambda x, y: x @ y),
    Case("sort", (D,), lambda m, L: lambda x: m.sort(x)),
    Case("argsort", (D,), lambda m, L: lambda x: m.argsort(x)),
    Case("median", (D,), lambda m, L: lambda x: m.median(x)),
    Case("int64 i * 3 + i", (WIDE,), lambda m, L: lambda i: i * 3 + i),
    Case("int64 i % 7", (WIDE,), lambda m, L: lambda i: i % 7),
    Case("int64 matmul of 300", (WIDE[:90_000].reshape(300, 300),) * 2, lambda m, L:
         lambda x, y: x @ y),
    Case("take", (D, WIDE), lambda m, L: lambda x, i: m.take(x, i)),
    Case("unique counts", (WIDE,), lambda m, L: lambda i: m.unique_counts(i)[1]),
]  # fmt: skip

CASES = [*ELEMENTWISE, *REDUCTIONS, *MOVES, *PRODUCTS, *TRANSFORMS, *LOOPS]


def softmax(m, x):
    e = m.exp(x - m.max(x, axis=-1, keepdims=True))
    return e / m.sum(e, axis=-1, keepdims=True)


def life(m, x):
    steps = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
    n = sum(m.roll(x, step, axis=(0, 1)) for step in steps)
    return m.where((n == 3) | ((x == 1) & (n == 2)), 1, 0)


def around(x):
    inner = x[1:-1, 1:-1, 1:-1]
    rows = x[2:, 1:-1, 1:-1] + x[:-2, 1:-1, 1:-1]
    columns = x[1:-1, 2:, 1:-1] + x[1:-1, :-2, 1:-1]
    return inner - (rows + columns + x[1:-1, 1:-1, 2:] + x[1:-1, 1:-1, :-2]) / 6


def k_means(m, x, centres):
    for _ in range(5):
        nearest = m.argmin(m.sum((x[:, None] - centres[None]) ** 2, axis=-1), axis=1)
        belongs = m.astype(nearest[:, None] == m.arange(8)[None], m.float32)
        centres = (belongs.T @ x) / (m.sum(belongs, axis=0)[:, None] + 1e-6)
    return centres


def loss(m):
    def of(p, x, y):
        hidden = m.tanh(m.tanh(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"])
        return m.mean((hidden @ p["w3"] - y) ** 2)

    return of


def attention(m, q, k, v):
    causal = m.tril(m.ones((q.shape[2], q.shape[2]), dtype="bool"))
    scores = m.where(causal, m.einsum("bhqd,bhkd->bhqk", q, k) / 8.0, -1e9)
    return m.sum(m.einsum("bhqk,bhkd->bhqd", softmax(m, scores), v) ** 2)


def recurrent(m, L, w, u, xs):  # noqa: N803
    def step(h, x):
        h = m.tanh(h @ w + x @ u)
        return h, h

    return L.scan(step, m.zeros((32, 128), dtype=m.float32), xs)[1]


def pendulum(m, L, x):  # noqa: N803
    def step(_, state):
        angle, speed = state
        speed = speed - 0.01 * m.sin(angle)
        return angle + 0.01 * speed, speed

    return L.fori_loop(0, 1000, step, (x, m.zeros_like(x)))[0]


def lorenz(m, y):
    return m.stack([10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])


def runge_kutta(m, y):
    h = 0.01
    a = lorenz(m, y)
    b = lorenz(m, y + h / 2 * a)
    c = lorenz(m, y + h / 2 * b)
    return y + h / 6 * (a + 2 * b + 2 * c + lorenz(m, y + h * c))
