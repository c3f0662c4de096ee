# SPDX-License-Identifier: Apache-2.0
"""What random functions are made of: words, how each is called and how its arguments are drawn.

A word takes the library that computes (`library.Library`), so that one text serves Tenon, NumPy
and JAX; `plain` is what it is where these have no such function. A draw gives arguments or None
where nothing fits; what NumPy then refuses, or makes too large, is drawn again (`growth`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from program import Ref

Drawn = tuple[tuple[Any, ...], dict[str, Any]] | None


@dataclass
class Pool:
    """The values that a step may read, as NumPy has them, and the dice."""

    random: np.random.Generator
    floats: str  # the type that floating-point values have in Tenon
    values: dict[Ref, Any]
    counter: Any = field(default_factory=itertools.count)
    depth: int = 0  # of bodies
    grow_body: Callable[..., Any] | None = None

    def new(self) -> Ref:
        return Ref(next(self.counter))

    def chance(self, p: float) -> bool:
        return bool(self.random.random() < p)

    def below(self, n: int) -> int:
        return int(self.random.integers(n))

    def one(self, items: Sequence[Any]) -> Any:
        return items[self.below(len(items))]

    def pick(self, kinds: str, fits: Callable[[Any], bool] = lambda _: True) -> Ref | None:
        """A value of these kinds of elements; late ones more often."""
        found = [
            ref
            for ref, value in self.values.items()
            if value.dtype.kind in kinds.replace("i", "iu") and fits(value)
        ]
        if not found:
            return None
        return found[-1 - min(self.below(len(found)), self.below(len(found)))]

    def number(self) -> float:
        return round(float(self.random.normal()) * 2, 3)

    def axis(self, x: Ref) -> int:
        rank = self.values[x].ndim
        return self.below(2 * rank) - rank if rank else 0

    def axes(self, x: Ref) -> Any:
        """None, an axis or some axes."""
        rank = self.values[x].ndim
        if rank == 0 or self.chance(0.25):
            return None
        if self.chance(0.5):
            return self.axis(x)
        count = 1 + self.below(rank)
        chosen = self.random.permutation(rank)[:count]
        return tuple(int(axis) - (rank if self.chance(0.3) else 0) for axis in chosen)

    def like(self, shape: Sequence[int], kinds: str) -> Ref | None:
        """A value that can be broadcast together with this shape."""

        def fits(value: Any) -> bool:
            try:
                np.broadcast_shapes(value.shape, tuple(shape))
            except ValueError:
                return False
            return True

        return self.pick(kinds, fits)


@dataclass(frozen=True)
class Word:
    call: Callable[..., Any]
    draw: Callable[[Pool], Drawn]
    plain: Callable[..., Any] | None = None
    smooth: bool = True  # False: finite differences do not see its slope
    weight: float = 1.0


WORDS: dict[str, Word] = {}


def word(name: str, draw: Callable[[Pool], Drawn], call: Any = None, **more: Any) -> None:
    """Adds a word; without a call it is the library's function of that name."""

    def of_library(lib: Any, *args: Any, **named: Any) -> Any:
        return getattr(lib, name)(*args, **named)

    WORDS[name] = Word(call or of_library, draw, **more)


def unary(kinds: str) -> Callable[[Pool], Drawn]:
    def draw(pool: Pool) -> Drawn:
        x = pool.pick(kinds)
        return None if x is None else ((x,), {})

    return draw


def binary(kinds: str, scalars: bool = False) -> Callable[[Pool], Drawn]:
    def draw(pool: Pool) -> Drawn:
        a = pool.pick(kinds)
        b = None if a is None else pool.like(pool.values[a].shape, kinds)
        if a is None or b is None:
            return None
        if scalars and pool.chance(0.25):
            kind = pool.values[a].dtype.kind
            literal = pool.number() if kind == "f" else 1 + pool.below(3)
            return ((a, literal) if pool.chance(0.5) else (literal, a)), {}
        return ((a, b) if pool.chance(0.5) else (b, a)), {}

    return draw


def reduction(kinds: str) -> Callable[[Pool], Drawn]:
    def draw(pool: Pool) -> Drawn:
        x = pool.pick(kinds)
        if x is None:
            return None
        return (x,), {"axis": pool.axes(x), "keepdims": pool.chance(0.4)}

    return draw


def along(kinds: str) -> Callable[[Pool], Drawn]:
    """x and one axis of it."""

    def draw(pool: Pool) -> Drawn:
        x = pool.pick(kinds, lambda value: value.ndim > 0)
        return None if x is None else ((x,), {"axis": pool.axis(x)})

    return draw


def in_unit(lib: Any, x: Any) -> Any:
    return lib.tanh(x) * 0.9


def above(lib: Any, x: Any) -> Any:
    return lib.abs(x) + 0.5


def guarded(name: str, guard: Callable[[Any, Any], Any], like: str = "") -> None:
    """A function that is not defined everywhere, or grows fast, of what lies where it is tame."""
    word(name, unary("f"), lambda lib, x: getattr(lib, like or name)(guard(lib, x)))


for name in "abs atan asinh cos sin tanh negative positive square sign ceil floor".split():
    word(name, unary("f"))
for name in "round trunc isfinite isnan signbit".split():
    word(name, unary("f"), weight=0.4)
for name in "abs negative sign square".split():
    word(f"{name} of integers", unary("i"), lambda lib, x, f=name: getattr(lib, f)(x), weight=0.4)
for name in "acos asin atanh".split():
    guarded(name, in_unit)
for name in "cosh exp expm1 sinh tan".split():
    guarded(name, lambda lib, x: lib.tanh(x))
for name in "log log2 log10 sqrt reciprocal log1p".split():
    guarded(name, above)
guarded("acosh", lambda lib, x: lib.square(x) + 1.5)

word("erf", unary("f"), lambda lib, x: lib.erf(x))
word("relu", unary("f"), plain=lambda lib, x: lib.maximum(x, 0))
word("relu6", unary("f"), plain=lambda lib, x: lib.minimum(lib.maximum(x, 0), 6))
word("sigmoid", unary("f"), plain=lambda lib, x: 0.5 * (1 + lib.tanh(x / 2)))
word("silu", unary("f"), plain=lambda lib, x: x * 0.5 * (1 + lib.tanh(x / 2)))
word("softplus", unary("f"), plain=lambda lib, x: lib.logaddexp(x, 0 * x))
word("gelu", unary("f"), plain=lambda lib, x: x * 0.5 * (1 + lib.erf(x / 2**0.5)))
word(
    "rsqrt",
    unary("f"),
    lambda lib, x: lib.rsqrt(above(lib, x)),
    plain=lambda lib, x: 1 / lib.sqrt(above(lib, x)),
)

word("a + b", binary("fi", scalars=True), lambda lib, a, b: a + b, weight=2)
word("a - b", binary("fi", scalars=True), lambda lib, a, b: a - b, weight=2)
word("a * b", binary("fi", scalars=True), lambda lib, a, b: a * b, weight=3)
for name in "add subtract multiply maximum minimum".split():
    word(name, binary("fi"))
for name in "equal not_equal less less_equal greater greater_equal".split():
    word(name, binary("fi", scalars=True), weight=0.5)
for name in "logaddexp copysign".split():
    word(name, binary("f"))
for name in "logical_and logical_or logical_xor".split():
    word(name, binary("bi"), weight=0.4)
for name in "bitwise_and bitwise_or bitwise_xor".split():
    word(name, binary("i"), weight=0.4)
word("logical_not", unary("bi"), weight=0.4)
word("bitwise_invert", unary("i"), weight=0.3)
word("divide", binary("f"), lambda lib, a, b: lib.divide(a, above(lib, b)))
word("a / b", binary("f"), lambda lib, a, b: a / above(lib, b))
word("hypot", binary("f"), lambda lib, a, b: lib.hypot(a, above(lib, b)))
word("atan2", binary("f"), lambda lib, a, b: lib.atan2(a, above(lib, b)))
word("remainder", binary("f"), lambda lib, a, b: lib.remainder(a, above(lib, b)), weight=0.5)
word("floor_divide", binary("f"), lambda lib, a, b: a // above(lib, b), weight=0.5)
word("floor_divide of integers", binary("i"), lambda lib, a, b: a // (lib.abs(b) + 1), weight=0.5)
word("remainder of integers", binary("i"), lambda lib, a, b: a % (lib.abs(b) + 1), weight=0.5)
word("pow", binary("f"), lambda lib, a, b: lib.pow(above(lib, a), lib.tanh(b) * 2))


def _power(pool: Pool) -> Drawn:
    x = pool.pick("f")
    return None if x is None else ((x, pool.one([2, 3, 0, 1])), {})


word("x ** n", _power, lambda lib, x, n: x**n)
word("x ** -n", _power, lambda lib, x, n: above(lib, x) ** -n)


def _shift(pool: Pool) -> Drawn:
    x = pool.pick("i")
    return None if x is None else ((x, pool.below(3)), {})


word("x << n", _shift, lambda lib, x, n: lib.bitwise_left_shift(x, lib.full_like(x, n)), weight=0.2)
word(
    "x >> n", _shift, lambda lib, x, n: lib.bitwise_right_shift(x, lib.full_like(x, n)), weight=0.2
)


def _where(pool: Pool) -> Drawn:
    condition = pool.pick("b")
    a = None if condition is None else pool.like(pool.values[condition].shape, "f")
    if a is None:
        return None
    shape = np.broadcast_shapes(pool.values[condition].shape, pool.values[a].shape)
    b = pool.number() if pool.chance(0.2) else pool.like(shape, "fi")
    return None if b is None else ((condition, a, b), {})


word("where", _where, weight=3)


def _clip(pool: Pool) -> Drawn:
    x = pool.pick("f")
    if x is None:
        return None
    low = pool.number()
    limits = {"min": low, "max": round(low + 1.5, 3)}
    for gone in ("min", "max"):
        if pool.chance(0.2) and len(limits) > 1:
            del limits[gone]
    return (x,), limits


word("clip", _clip)


def _cast(pool: Pool) -> Drawn:
    x = pool.pick("fib")
    to = pool.one(["float", "float", "float", "int64", "int32", "bool"])
    return None if x is None else ((x, to), {})


def cast(lib: Any, x: Any, to: str) -> Any:
    if to != "float":
        # What lies between two whole numbers is a jump that noise sees; 0 of a bool the same.
        return lib.astype(x, np.dtype(to) if lib.is_oracle else to)
    return lib.astype(x, np.dtype(lib.floats) if lib.is_oracle else lib.floats)


word("astype", _cast, cast, weight=2)
word("stop_gradient", unary("f"), lambda lib, x: lib.stop_gradient(x), smooth=False, weight=0.3)

for name in "sum mean max min prod var".split():
    word(name, reduction("f"))
for name in "sum max min prod".split():
    word(
        f"{name} of integers",
        reduction("i"),
        lambda lib, x, f=name, **named: getattr(lib, f)(x, **named),
        weight=0.4,
    )
for name in "all any".split():
    word(name, reduction("bi"), weight=0.5)


def _std(lib: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    """Of what is not all equal, where its slope is not defined."""
    along = axis if isinstance(axis, int) else axis[0] if axis else 0
    wide = lib.concat([x, x + 1, x - 2], axis=along) if x.shape else lib.stack([x, x + 1])
    return lib.std(wide, axis=axis, keepdims=keepdims)


word("std", reduction("f"), _std, weight=0.7)
word(
    "count_nonzero",
    reduction("b"),
    lambda lib, x, axis, keepdims: lib.count_nonzero(x, axis=axis, keepdims=keepdims),
    weight=0.5,
)
word(
    "logsumexp",
    reduction("f"),
    plain=lambda lib, x, axis, keepdims: (
        lib.log(lib.sum(lib.exp(x - lib.max(x)), axis=axis, keepdims=keepdims)) + lib.max(x)
    ),
)
for name in "argmax argmin".split():
    word(name, along("f"), weight=0.5)
for name in "cumulative_sum cumulative_prod".split():
    word(name, along("f"))


def _softmax(lib: Any, x: Any, axis: int) -> Any:
    made = lib.exp(x - lib.max(x, axis=axis, keepdims=True))
    return made / lib.sum(made, axis=axis, keepdims=True)


word("softmax", along("f"), plain=_softmax)
word("log_softmax", along("f"), plain=lambda lib, x, axis: lib.log(_softmax(lib, x, axis)))
