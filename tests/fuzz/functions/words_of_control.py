# SPDX-License-Identifier: Apache-2.0
"""Words that take functions: control flow, checkpoint, and jit, grad and vmap within a function.

NumPy and JAX take control flow apart: both branches and a choice, all steps that a loop may make.
"""

from __future__ import annotations

from typing import Any

from program import Ref
from vocabulary import Drawn, Pool, word

MOST_STEPS = 4


def blend(lib: Any, state: Any, made: Any) -> Any:
    """A step's new state: it stays small and keeps its shape whatever was computed."""
    if made.shape == state.shape:
        return state * 0.5 + lib.tanh(made) * 0.75
    return state * 0.5 + lib.tanh(lib.mean(made))


def _state(pool: Pool) -> Ref | None:
    return pool.pick("f", lambda value: value.size <= 12)


def _bodies(pool: Pool, shapes_of: list[Ref], count: int) -> list[Any] | None:
    assert pool.grow_body
    bodies = [pool.grow_body([pool.values[ref] for ref in shapes_of]) for _ in range(count)]
    return None if pool.depth > 1 or None in bodies else bodies


def _cond(pool: Pool) -> Drawn:
    x = _state(pool)
    by = None if x is None else pool.pick("f", lambda value: value.size == 1)
    bodies = None if by is None else _bodies(pool, [x], 2)
    return None if bodies is None else ((by, *bodies, x), {})


def _truth(lib: Any, by: Any) -> Any:
    return lib.reshape(by, ()) > 0.1


def _plain_cond(lib: Any, by: Any, true: Any, false: Any, x: Any) -> Any:
    return lib.where(_truth(lib, by), blend(lib, x, true(x)), blend(lib, x, false(x)))


word(
    "cond",
    _cond,
    lambda lib, by, true, false, x: lib.cond(
        _truth(lib, by), lambda x: blend(lib, x, true(x)), lambda x: blend(lib, x, false(x)), x
    ),
    plain=_plain_cond,
    weight=1.5,
)


def _loop(pool: Pool) -> Drawn:
    x = _state(pool)
    bodies = None if x is None else _bodies(pool, [x], 1)
    return None if bodies is None else ((*bodies, x, pool.below(MOST_STEPS + 1)), {})


def _fori(lib: Any, body: Any, x: Any, n: int) -> Any:
    return lib.fori_loop(0, n, lambda i, x: blend(lib, x, body(x)), x)


def _plain_fori(lib: Any, body: Any, x: Any, n: int) -> Any:
    for _ in range(n):
        x = blend(lib, x, body(x))
    return x


word("fori_loop", _loop, _fori, plain=_plain_fori)


def _while(lib: Any, body: Any, x: Any, n: int) -> Any:
    def goes(state: Any) -> Any:
        i, x = state
        return lib.logical_and(i < n, lib.sum(x) < 2.0)

    def step(state: Any) -> Any:
        i, x = state
        return i + 1, blend(lib, x, body(x))

    return lib.while_loop(goes, step, (lib.asarray(0, dtype="int64"), x))[1]


def _plain_while(lib: Any, body: Any, x: Any, n: int) -> Any:
    going: Any = True
    for _ in range(n):
        going = lib.logical_and(going, lib.sum(x) < 2.0)
        x = lib.where(going, blend(lib, x, body(x)), x)
    return x


word("while_loop", _loop, _while, plain=_plain_while)


def _scan_draw(pool: Pool) -> Drawn:
    x = _state(pool)
    along = pool.pick("f", lambda value: value.ndim > 0 and 0 < len(value) <= MOST_STEPS)
    if x is None or along is None:
        return None
    assert pool.grow_body
    body = pool.grow_body([pool.values[x], pool.values[along][0]])
    if body is None or pool.depth > 1:
        return None
    return (body, x, along), {"reverse": pool.chance(0.4), "last": pool.chance(0.4)}


def _scan(lib: Any, body: Any, x: Any, along: Any, reverse: bool, last: bool) -> Any:
    def step(state: Any, one: Any) -> Any:
        made = body(state, one)
        return blend(lib, state, made), blend(lib, one, made)

    state, stacked = lib.scan(step, x, along, reverse=reverse)
    return state if last else stacked


def _plain_scan(lib: Any, body: Any, x: Any, along: Any, reverse: bool, last: bool) -> Any:
    count = along.shape[0]
    stacked: list[Any] = [None] * count
    for i in reversed(range(count)) if reverse else range(count):
        made = body(x, along[i])
        stacked[i] = blend(lib, along[i], made)
        x = blend(lib, x, made)
    return x if last else lib.stack(stacked)


word("scan", _scan_draw, _scan, plain=_plain_scan)


def _one_body(pool: Pool) -> Drawn:
    x = _state(pool)
    bodies = None if x is None else _bodies(pool, [x], 1)
    return None if bodies is None else ((*bodies, x), {})


word(
    "checkpoint",
    _one_body,
    lambda lib, body, x: lib.checkpoint(body)(x),
    plain=lambda lib, body, x: body(x),
    weight=0.5,
)
word(
    "jit",
    _one_body,
    lambda lib, body, x: lib.jit(body)(x),
    plain=lambda lib, body, x: body(x),
    weight=0.5,
)


def _over_rows(pool: Pool) -> Drawn:
    x = pool.pick("f", lambda value: value.ndim > 0 and 0 < len(value) <= MOST_STEPS)
    if x is None or pool.depth > 1:
        return None
    assert pool.grow_body
    body = pool.grow_body([pool.values[x][0]])
    return None if body is None else ((body, x), {})


word(
    "vmap",
    _over_rows,
    lambda lib, body, x: lib.vmap(body)(x),
    plain=lambda lib, body, x: lib.stack([body(x[i]) for i in range(x.shape[0])]),
    weight=0.7,
)


def _slope(lib: Any, body: Any, x: Any) -> Any:
    return lib.grad(lambda x: lib.sum(lib.tanh(body(x))))(x)


word("grad", _one_body, _slope, weight=0.7)
