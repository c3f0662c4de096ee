# SPDX-License-Identifier: Apache-2.0
"""Grows random functions, in step with NumPy: what it refuses, or makes huge, is drawn again."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import words_of_control  # noqa: F401, the words of a table are added by importing it
import words_of_products  # noqa: F401
import words_of_shapes  # noqa: F401
import words_of_statistics  # noqa: F401
from library import Library, values_of
from program import Body, Program, Step, needed, refs
from vocabulary import WORDS, Pool

FLOATS = {"float32": 0.7, "float64": 0.14, "float16": 0.08, "bfloat16": 0.08}
LARGEST = 500.0  # of the numbers in a function
MOST_ELEMENTS = 96
MOST_OUTPUTS = 5
NUMPY = Library(np, is_oracle=True)


def _shape(random: np.random.Generator) -> tuple[int, ...]:
    rank = int(random.choice([0, 1, 2, 3, 4], p=[0.1, 0.3, 0.4, 0.15, 0.05]))
    sizes = [1, 2, 3, 4] if rank < 3 else [1, 2, 3]
    shape = [int(random.choice(sizes)) for _ in range(rank)]
    if rank and random.random() < 0.02:
        shape[int(random.integers(rank))] = 0
    return tuple(shape)


def draw_input(random: np.random.Generator, kind: str, shape: Sequence[int]) -> np.ndarray:
    """Numbers of an input: real ones float64 of few digits, so that every float type holds them."""
    if kind == "b":
        return random.random(shape) < 0.5
    if kind in ("int64", "int32", "int8"):
        return random.integers(-3, 5, shape).astype(kind)
    return np.asarray(np.round(random.normal(size=shape) * 1.5 * 64) / 64)


def _is_tame(made: Any) -> bool:
    if not isinstance(made, (np.ndarray, np.generic)) or made.dtype.kind not in "fiub":
        return False
    if made.size > MOST_ELEMENTS or made.ndim > 5:
        return False
    with np.errstate(all="ignore"):
        return bool(np.isfinite(made).all()) and bool((np.abs(made.astype("f8")) < LARGEST).all())


def _value(pool: Pool, step: Step) -> Any:
    """What the step gives, or None where NumPy refuses it."""
    probe = Program(pool.floats, pool.values, (step,), ())
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            made = values_of(NUMPY, probe, list(pool.values.values()))[step.makes]
    except (ValueError, IndexError, TypeError, ZeroDivisionError, OverflowError):
        return None
    except np.linalg.LinAlgError:
        return None
    made = np.asarray(made)
    return made if _is_tame(made) else None


def _draw_step(pool: Pool, names: list[str], weights: np.ndarray) -> Step | None:
    word = WORDS[name := names[int(pool.random.choice(len(names), p=weights))]]
    drawn = word.draw(pool)
    if drawn is None or any(arg is None for arg in drawn[0][:2]):
        return None
    step = Step(pool.new(), name, *drawn)
    made = _value(pool, step)
    if made is None:
        return None
    pool.values[step.makes] = made
    return step


def _grow_steps(pool: Pool, count: int, names: list[str], weights: np.ndarray) -> list[Step]:
    steps: list[Step] = []
    for _ in range(count * 12):
        if len(steps) == count:
            break
        if (step := _draw_step(pool, names, weights)) is not None:
            steps.append(step)
    return steps


def _body_grower(pool: Pool, names: list[str], weights: np.ndarray) -> Any:
    def grow_body(like: list[np.ndarray]) -> Body | None:
        if pool.depth > 1:
            return None
        before = pool.values
        takes = [pool.new() for _ in like]
        few = dict(itertools.islice(reversed(before.items()), 3))  # what it sees of outside
        pool.values = {**dict(reversed(few.items())), **dict(zip(takes, map(np.asarray, like)))}
        pool.depth += 1
        steps = _grow_steps(pool, 1 + pool.below(3), names, weights)
        real = [step.makes for step in steps if pool.values[step.makes].dtype.kind == "f"]
        pool.depth -= 1
        pool.values = before
        if not real:
            return None
        return Body(tuple(takes), tuple(steps), real[-1])

    return grow_body


def grow(seed: int, number: int, only: set[str] | None = None) -> Program | None:
    """The function of this number; None where nothing came of it. only: the words it may use."""
    random = np.random.default_rng([seed, number])
    floats = str(random.choice(list(FLOATS), p=list(FLOATS.values())))
    names = [name for name in WORDS if only is None or name in only]
    weights = np.array([WORDS[name].weight for name in names])
    weights /= weights.sum()
    pool = Pool(random, floats, {})
    pool.grow_body = _body_grower(pool, names, weights)
    shapes = [_shape(random) for _ in range(2)]
    for _ in range(1 + pool.below(3)):
        shape = pool.one(shapes) if pool.chance(0.6) else _shape(random)
        pool.values[pool.new()] = draw_input(random, "float", shape)
    for kind in ("int64", "int32", "int8", "b"):
        if pool.chance(0.5 if kind == "int64" else 0.15):
            pool.values[pool.new()] = draw_input(random, kind, pool.one(shapes))
    inputs = dict(pool.values)
    steps = _grow_steps(pool, 3 + pool.below(14), names, weights)
    if not steps:
        return None
    real = [step.makes for step in steps if pool.values[step.makes].dtype.kind == "f"]
    read = {ref for step in steps for ref in refs(step)}
    unread = [step.makes for step in steps if step.makes not in read]
    outputs = {*real[-1:], *unread[-MOST_OUTPUTS:]}
    program = Program(floats, inputs, tuple(steps), tuple(sorted(outputs, key=lambda r: r.number)))
    program = needed(program)
    has_real = any(array.dtype.kind == "f" for array in program.inputs.values())
    return program if has_real and real else None
