# SPDX-License-Identifier: Apache-2.0
"""What `sweep.py` measures: a row is a name, arguments of a size and a type, and a function."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Row(NamedTuple):
    name: str
    arguments: Callable[[int, str], tuple[Any, ...]]
    build: Callable[[Any], Callable[..., Any]]
    kinds: str = "fd"
    most: int = 1_000_000


def numbers(n: int, kind: str, *shape: int) -> np.ndarray:
    rng = np.random.default_rng(n)
    shape = shape or (n,)
    if kind == "?":
        return rng.integers(0, 2, shape).astype("bool")
    if kind in "fde":
        return (rng.random(shape) * 0.9 + 0.05).astype(kind)
    return rng.integers(1, 7, shape).astype(kind)


def one(n, kind):
    return (numbers(n, kind),)


def two(n, kind):
    return numbers(n, kind), numbers(n + 1, kind)[:n]


def sides(n: int) -> tuple[int, int]:
    rows = max(1, int(n**0.5))
    return rows, max(1, n // rows)


def table(n, kind):  # nearly square
    return (numbers(n, kind, *sides(n)),)


def narrow(n, kind):  # [n / 4, 4]
    return (numbers(n, kind, max(1, n // 4), min(n, 4)),)


def cube(n, kind):
    side = max(1, round(n ** (1 / 3)))
    return (numbers(n, kind, side, side, side),)


def square(n, kind):  # well conditioned
    side = max(1, int(n**0.5))
    return (numbers(n, kind, side, side) + side * np.eye(side, dtype=kind),)


def definite(n, kind):
    x = square(n, kind)[0]
    return (x + x.T,)


def stack_of(side):  # many small well conditioned matrices
    def made(n, kind):
        count = max(1, n // side**2)
        x = numbers(n, kind, count, side, side) + side * np.eye(side, dtype=kind)
        return (x + np.swapaxes(x, 1, 2),)

    return made


def with_places(n, kind):
    return numbers(n, kind), np.random.default_rng(1).integers(0, n, n)


def with_rows(n, kind):
    x = table(n, kind)[0]
    return x, np.random.default_rng(1).integers(0, len(x), len(x))


def masked(n, kind):
    return numbers(n, kind), np.random.default_rng(1).integers(0, 2, n).astype("bool")


def pairs(n, kind):
    return (numbers(n, kind, n, 2),)


def call(name: str, *more: Any, **named: Any):
    """The function of that name, `linalg.` and `fft.` included."""

    def build(m):
        for part in name.split("."):
            m = getattr(m, part)
        function = m
        return lambda *arrays: function(*arrays, *more, **named)

    return build


def rows_of(names: str, arguments=one, kinds: str = "fd", most: int = 1_000_000) -> list[Row]:
    return [Row(name, arguments, call(name), kinds, most) for name in names.split()]


def axes_of(names: str, kinds: str) -> list[Row]:
    made = []
    for name in names.split():
        made.append(Row(name, one, call(name), kinds))
        for axis in (0, 1):
            made.append(Row(f"{name} axis {axis}", table, call(name, axis=axis), kinds))
            made.append(Row(f"{name} axis {axis} of 4", narrow, call(name, axis=axis), kinds))
        made.append(Row(f"{name} axis 1 of 3", cube, call(name, axis=1), kinds))
    return made


ELEMENTWISE = [
    *rows_of("sin cos tan exp expm1 log log1p log2 log10 sqrt tanh sinh cosh", kinds="fde"),
    *rows_of("asin acos atan asinh atanh ceil floor trunc round", kinds="fde"),
    *rows_of("reciprocal", kinds="fde"),
    *rows_of("isnan isinf isfinite signbit", kinds="fde"),
    *rows_of("abs negative sign square positive", kinds="fdeil"),
    *rows_of("logical_not", kinds="f?i"),
    *rows_of("bitwise_invert", kinds="il?"),
    *rows_of("add subtract multiply maximum minimum", two, "fdeil"),
    *rows_of("divide atan2 hypot logaddexp copysign", two, "fde"),
    *rows_of("pow floor_divide remainder", two, "fdeil"),
    *rows_of("equal less greater_equal not_equal", two, "fdeil"),
    *rows_of("logical_and logical_or logical_xor", two, "f?i"),
    *rows_of("bitwise_and bitwise_or bitwise_xor", two, "il?"),
    *rows_of("bitwise_left_shift bitwise_right_shift", two, "il"),
    Row("pow 2", one, lambda m: lambda x: x**2, "fdeil"),
    Row("pow 3", one, lambda m: lambda x: x**3, "fdil"),
    Row("pow 0.5", one, lambda m: lambda x: x**0.5, "fd"),
    Row("clip", one, lambda m: lambda x: m.clip(x, 0, 1), "fdeil"),
    Row("where", masked, lambda m: lambda x, c: m.where(c, x, -x), "fdeil"),
    *[Row(f"astype {t}", one, lambda m, t=t: lambda x: m.astype(x, t), "fdeil?")
      for t in ("float32", "float64", "int32", "int64", "bool", "float16", "uint8")],
    Row("rows less means", table, lambda m: lambda x: x - m.mean(x, axis=1, keepdims=True)),
    Row("columns less means", table, lambda m: lambda x: x - m.mean(x, axis=0, keepdims=True)),
    Row("outer sum", lambda n, k: two(sides(n)[0], k), lambda m: lambda x, y: x[:, None] + y,
        "fdil"),
    Row("x + x.T", square, lambda m: lambda x: x + x.T, "fdil"),
]  # fmt: skip

REDUCTIONS = [
    *axes_of("sum max min", "fdeil"),
    *axes_of("prod mean", "fdil"),
    *axes_of("var std", "fde"),
    *axes_of("argmax argmin", "fdeil"),
    *axes_of("any all count_nonzero", "f?i"),
    *[Row(f"{name} axis {axis}", table, call(name, axis=axis), "fdil")
      for name in ("cumulative_sum", "cumulative_prod") for axis in (0, 1)],
    *[Row(f"diff axis {axis}", table, call("diff", axis=axis), "fdil") for axis in (0, 1)],
    Row("cumulative_sum", one, call("cumulative_sum", axis=0), "fdil"),
]  # fmt: skip

MOVES = [
    *[Row(f"flip {axis}", table, call("flip", axis=axis), "fdel?") for axis in (0, 1)],
    *[Row(f"roll {axis}", table, call("roll", 3, axis=axis), "fdel?") for axis in (0, 1)],
    *[Row(f"repeat {axis}", table, call("repeat", 3, axis=axis), "fdl") for axis in (0, 1)],
    Row("tile", table, lambda m: lambda x: m.tile(x, (2, 2)), "fdl"),
    *[Row(f"concat {axis}", table, lambda m, axis=axis: lambda x: m.concat([x, x], axis=axis),
          "fdel?") for axis in (0, 1)],
    *[Row(f"stack {axis}", table, lambda m, axis=axis: lambda x: m.stack([x, x], axis=axis),
          "fdel?") for axis in (0, 1, 2)],
    Row("split", table, lambda m: lambda x: m.split(x, x.shape[1], axis=1)[0], "f"),
    *[Row(f"pad {mode}", table, call("pad", 1, mode=mode), "fdl")
      for mode in ("constant", "edge", "reflect", "wrap")],
    Row("transpose", square, call("permute_dims", (1, 0)), "fdel?"),
    Row("permute 120", cube, call("permute_dims", (1, 2, 0)), "fdel"),
    Row("permute 210", cube, call("permute_dims", (2, 1, 0)), "fdel"),
    Row("moveaxis", cube, call("moveaxis", 0, 1), "fdel"),
    Row("broadcast_to", one, lambda m: lambda x: m.broadcast_to(x[:1], x.shape), "fdl"),
    *rows_of("tril triu", square, "fdl"),
    Row("step of two", one, lambda m: lambda x: x[::2], "fdel?"),
    Row("reversed", one, lambda m: lambda x: x[::-1], "fdel?"),
    Row("columns of two", table, lambda m: lambda x: x[:, ::2], "fdel?"),
    Row("meshgrid", lambda n, k: two(sides(n)[0], k), call("meshgrid"), "fd"),
    Row("linalg.diagonal", square, call("linalg.diagonal"), "fd"),
    Row("linalg.trace", square, call("linalg.trace"), "fdl"),
]  # fmt: skip

INDEXING = [
    Row("take", with_places, call("take", axis=0), "fdeil?"),
    Row("take rows", with_rows, call("take", axis=0), "fdel"),
    Row("take columns", with_rows, call("take", axis=1), "fdel"),
    Row("x[i]", with_places, lambda m: lambda x, i: x[i], "fdl"),
    Row("x[i, i]", with_rows, lambda m: lambda x, i: x[i, i], "fdl"),
    Row("x[:, i]", with_rows, lambda m: lambda x, i: x[:, i], "fdl"),
    Row("take_along_axis 0", lambda n, k: (table(n, k)[0], np.argsort(table(n, k)[0], 0)),
        call("take_along_axis", axis=0), "fdl"),
    Row("take_along_axis 1", lambda n, k: (table(n, k)[0], np.argsort(table(n, k)[0], 1)),
        call("take_along_axis", axis=1), "fdl"),
    *[Row(f"x.at[i].{name}", with_places, lambda m, name=name:
          lambda x, i: getattr(x.at[i], name)(x), "fdeil") for name in ("set", "add", "max")],
    Row("x.at[i].multiply", with_places, lambda m: lambda x, i: x.at[i].multiply(x), "fdl"),
    Row("x.at[i] rows add", with_rows, lambda m: lambda x, i: x.at[i].add(x), "fdeil"),
    Row("x.at[:, i] add", with_rows, lambda m: lambda x, i: x.at[:, i].add(x[:, :1]), "fdl"),
    Row("x.at[slice].set", table, lambda m: lambda x: x.at[1:, 1:].set(0), "fdl"),
    Row("x.at[step].add", one, lambda m: lambda x: x.at[::2].add(1), "fdl"),
    Row("x.at[0].set", table, lambda m: lambda x: x.at[0].set(1), "fdl"),
    Row("x.at[mask] by where", masked, lambda m: lambda x, c: m.where(c, 0, x), "fdl"),
]  # fmt: skip

SORTING = [
    *[Row(f"{name} axis {axis}", table, call(name, axis=axis), "fdeil")
      for name in ("sort", "argsort") for axis in (0, 1)],
    *[Row(f"{name} axis {axis} of 4", narrow, call(name, axis=axis), "fdl")
      for name in ("sort", "argsort") for axis in (0, 1)],
    *rows_of("sort argsort", one, "fdeil"),
    Row("searchsorted", lambda n, k: (np.sort(numbers(n, k)), numbers(n + 1, k)),
        call("searchsorted"), "fdeil"),
    Row("interp", lambda n, k: (numbers(n, k), np.linspace(0, 1, 100, dtype=k),
                                numbers(100, k)), call("interp"), "fd"),
    *[Row("median" + (f" axis {axis}" if axis is not None else ""), table,
          call("median", axis=axis), "fdi") for axis in (None, 0, 1)],
    *[Row("quantile" + (f" axis {axis}" if axis is not None else ""), table,
          call("quantile", 0.3, axis=axis), "fd") for axis in (None, 0, 1)],
    *rows_of("unique_values unique_counts unique_inverse unique_all nonzero", one, "fdil"),
    Row("bincount", one, lambda m: {
        "tenon": lambda x: m.bincount(x, 7), "jax.numpy": lambda x: m.bincount(x, length=7),
    }.get(m.__name__, lambda x: m.bincount(x, minlength=7)), "il"),
]  # fmt: skip

PRODUCTS = [
    *rows_of("matmul", lambda n, k: (square(n, k)[0],) * 2, "fdeil"),
    Row("matrix times vector", lambda n, k: (square(n, k)[0], square(n, k)[0][0]),
        call("matmul"), "fdeil"),
    Row("vector times matrix", lambda n, k: (square(n, k)[0][0], square(n, k)[0]),
        call("matmul"), "fdeil"),
    Row("x.T @ x", narrow, lambda m: lambda x: x.T @ x, "fd"),
    Row("dot", two, lambda m: lambda x, y: x @ y, "fdeil"),
    Row("vecdot", lambda n, k: table(n, k) * 2, call("vecdot"), "fdl"),
    *[Row(f"products of {s} x {s}", lambda n, k, s=s: stack_of(s)(n, k) * 2, call("matmul"),
          "fdeil") for s in (2, 3, 4, 16)],
    Row("kron", lambda n, k: (numbers(n, k, 2, 2), square(n // 4 + 1, k)[0]), call("kron"), "fdl"),
    Row("linalg.outer", lambda n, k: two(sides(n)[0], k), call("linalg.outer"), "fdil"),
    Row("convolve", lambda n, k: (numbers(n, k), numbers(9, k)), call("convolve"), "fdl"),
    Row("tensordot", lambda n, k: cube(n, k) * 2, lambda m: lambda x, y: m.tensordot(
        x, y, axes=((0, 1), (0, 1))), "fd"),
    Row("einsum ijk,ikl", lambda n, k: cube(n, k) * 2,
        lambda m: lambda x, y: m.einsum("ijk,ikl->ijl", x, y), "fdl"),
    Row("einsum ij,ij->i", lambda n, k: table(n, k) * 2,
        lambda m: lambda x, y: m.einsum("ij,ij->i", x, y), "fdl"),
    Row("einsum ij->ji", square, lambda m: lambda x: m.einsum("ij->ji", x), "fdl"),
    Row("einsum ii->", square, lambda m: lambda x: m.einsum("ii->", x), "fdl"),
    Row("einsum ij,jk,kl", lambda n, k: square(min(n, 40_000), k) * 3,
        lambda m: lambda x, y, z: m.einsum("ij,jk,kl->il", x, y, z), "fd"),
    Row("linalg.cross", lambda n, k: (numbers(n, k, n, 3), numbers(n + 1, k, n, 3)),
        call("linalg.cross"), "fd"),
    Row("linalg.vector_norm", one, call("linalg.vector_norm"), "fd"),
    *[Row(f"linalg.vector_norm axis {a}", table, call("linalg.vector_norm", axis=a), "fd")
      for a in (0, 1)],
    *[Row(f"{name} of {s}", stack_of(s), call(name), "fd", 100_000)
      for s in (2, 3, 8, 32) for name in (
          "linalg.cholesky", "linalg.inv", "linalg.det", "linalg.eigh", "linalg.svd",
          "linalg.qr", "linalg.slogdet", "linalg.pinv", "linalg.svdvals")],
    *[Row(name, definite, call(name), "fd", 40_000) for name in (
        "linalg.cholesky", "linalg.inv", "linalg.det", "linalg.eigh", "linalg.eigvalsh",
        "linalg.svd", "linalg.qr", "linalg.slogdet", "linalg.pinv", "linalg.matrix_rank",
        "linalg.svdvals")],
    Row("linalg.solve", lambda n, k: definite(n, k) * 2, call("linalg.solve"), "fd", 40_000),
    Row("linalg.matrix_power", definite, call("linalg.matrix_power", 5), "fd", 40_000),
]  # fmt: skip

RANDOM = [
    Row("linspace", lambda n, k: (np.zeros(n, k),), lambda m: lambda x: m.linspace(
        0, 1, x.shape[0]) + x, "f"),
    Row("arange", lambda n, k: (np.zeros(n, k),), lambda m: lambda x: m.arange(
        x.shape[0]) + x, "fl"),
    Row("eye", square, lambda m: lambda x: m.eye(x.shape[0]) + x, "f"),
    Row("random_uniform", one, lambda m: (lambda x: m.random_uniform(x.shape, key=[0, 1]))
        if m.__name__ == "tenon" else lambda x: np.random.default_rng(0).random(
            x.shape, dtype="f"), "f"),
    Row("random_normal", one, lambda m: (lambda x: m.random_normal(x.shape, key=[0, 1]))
        if m.__name__ == "tenon" else lambda x: np.random.default_rng(0).standard_normal(
            x.shape, dtype="f"), "f"),
]  # fmt: skip

FOURIER = [
    Row("fft.rfft", table, lambda m: lambda x: m.fft.rfft(x), "fd"),
    Row("fft.rfft 1", one, lambda m: lambda x: m.fft.rfft(x), "fd"),
    Row("fft.rfft axis 0", table, lambda m: lambda x: m.fft.rfft(x, axis=0), "fd"),
    Row("fft.rfftn", table, lambda m: lambda x: m.fft.rfftn(x), "fd"),
    Row("fft.fft", pairs, lambda m: (lambda x: m.fft.fft(x)) if m.__name__ == "tenon" else
        (lambda x: m.fft.fft(x[..., 0] + 1j * x[..., 1])), "fd"),
    Row("fft.fftshift", table, call("fft.fftshift"), "fd"),
]  # fmt: skip


def loops(m) -> tuple[Any, Any]:
    """Where the loops and the transforms of a library are; NumPy has none."""
    if m.__name__ == "tenon":
        return m, m
    if m.__name__ == "numpy":
        raise AttributeError("loops")
    import jax

    return jax.lax, jax


def state(side):  # for a loop whose rounds are the size
    return lambda n, kind: (numbers(side, kind, side), np.zeros(n, kind))


def matrices_of(side):
    def made(n, kind):
        return numbers(side, kind, side), numbers(1, kind, side, side) / side, np.zeros(n, kind)

    return made


def rounds(step):
    """scan of a step over as many rounds as the last argument has elements."""

    def build(m):
        control = loops(m)[0]

        def run(x, *more):
            def body(state, _):
                return step(m, state, *more[:-1]), None

            return control.scan(body, x, more[-1])[0]

        return run

    return build


def until(m):  # three values and a condition that reduces
    control = loops(m)[0]

    def run(x, steps):
        def goes_on(state):
            return (state[0] < steps.shape[0]) & (m.max(state[1]) < 1e30)

        def body(state):
            return state[0] + 1, state[1] * 0.5 + 0.25

        return control.while_loop(goes_on, body, (m.zeros((), dtype=m.int32), x))[1]

    return run


def counted(m):
    control = loops(m)[0]
    return lambda x, steps: control.fori_loop(
        0, steps.shape[0], lambda i, state: state * 0.5 + m.sum(state), x
    )


def mapped(name, *more, **named):
    def build(m):
        one_of, transforms = call(name, *more, **named)(m), loops(m)[1]
        return transforms.vmap(one_of)

    return build


def halved(m):  # another number of rounds for each example
    control, transforms = loops(m)
    return transforms.vmap(lambda x: control.while_loop(lambda y: y > 0.01, lambda y: y * 0.5, x))


LOOPS = [
    Row("scan of sums of 8", state(8), rounds(lambda m, x: x - m.mean(x)), "fd", 100_000),
    Row("scan of sums of 1000", state(1000), rounds(lambda m, x: x - m.mean(x)), "fd", 10_000),
    Row("scan of softmax of 16", state(16), rounds(lambda m, x: m.exp(x - m.max(x)) / m.sum(
        m.exp(x - m.max(x)))), "fd", 10_000),
    *[Row(f"scan of {s} x {s} products", matrices_of(s), rounds(lambda m, x, w: w @ x), "fd",
          10_000) for s in (4, 16, 64)],
    Row("fori_loop of sums of 8", state(8), counted, "fd", 100_000),
    Row("while_loop of 8", state(8), until, "fd", 100_000),
    Row("vmap of while_loop", one, halved, "fd", 10_000),
    Row("vmap of sort", table, mapped("sort"), "fdi"),
    *[Row(f"vmap of {name} of 8", stack_of(8), mapped(name), "fd", 100_000)
      for name in ("linalg.inv", "linalg.cholesky", "linalg.det", "linalg.eigh")],
]  # fmt: skip

ROWS = [
    *ELEMENTWISE, *REDUCTIONS, *MOVES, *INDEXING, *SORTING, *PRODUCTS, *RANDOM, *FOURIER, *LOOPS
]  # fmt: skip
