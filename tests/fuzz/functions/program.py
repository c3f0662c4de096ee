# SPDX-License-Identifier: Apache-2.0
"""What a random function is: steps, each a word with its arguments, in an order that can run.

A value has a number of its own (`Ref`), which it keeps while a function is made smaller; the
functions of control flow (`Body`) see the values before them, as closures do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Ref:
    """The value of this number."""

    number: int

    def __repr__(self) -> str:
        return f"v{self.number}"


@dataclass(frozen=True)
class Body:
    """A function of `takes` that gives `gives`."""

    takes: tuple[Ref, ...]
    steps: tuple[Step, ...]
    gives: Ref


@dataclass(frozen=True)
class Step:
    makes: Ref
    word: str
    args: tuple[Any, ...] = ()
    named: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Program:
    """A function of arrays; `floats` is the type that its floating-point values have in Tenon."""

    floats: str
    inputs: dict[Ref, np.ndarray]  # as they are outside; the real ones float64
    steps: tuple[Step, ...]
    outputs: tuple[Ref, ...]


def map_refs(item: Any, of: Callable[[Ref], Any]) -> Any:
    """item with of(ref) instead of each reference; bodies as they are."""
    if isinstance(item, Ref):
        return of(item)
    if isinstance(item, (tuple, list)):
        return type(item)(map_refs(one, of) for one in item)
    if isinstance(item, dict):
        return {key: map_refs(one, of) for key, one in item.items()}
    return item


def refs(item: Any) -> Iterator[Ref]:
    """References in arguments; of a body those to values before it."""
    if isinstance(item, Ref):
        yield item
    elif isinstance(item, Step):
        yield from refs((item.args, item.named))
    elif isinstance(item, Body):
        own = {*item.takes, *(step.makes for step in item.steps)}
        for part in (*item.steps, item.gives):
            yield from (ref for ref in refs(part) if ref not in own)
    elif isinstance(item, (tuple, list)):
        for one in item:
            yield from refs(one)
    elif isinstance(item, dict):
        yield from refs(tuple(item.values()))


def rename(item: Any, old: Ref, new: Ref) -> Any:
    """item with `new` wherever it reads `old`, in bodies too."""
    if isinstance(item, Step):
        return replace(item, args=rename(item.args, old, new), named=rename(item.named, old, new))
    if isinstance(item, Body):
        steps = tuple(rename(step, old, new) for step in item.steps)
        return replace(item, steps=steps, gives=rename(item.gives, old, new))
    if isinstance(item, (tuple, list)):
        return type(item)(rename(one, old, new) for one in item)
    if isinstance(item, dict):
        return {key: rename(one, old, new) for key, one in item.items()}
    return new if item == old else item


def needed(program: Program) -> Program:
    """Without the steps and inputs that no output needs."""
    wanted = set(program.outputs)
    steps = []
    for step in reversed(program.steps):
        if step.makes in wanted:
            wanted.update(refs(step))
            steps.append(step)
    inputs = {ref: array for ref, array in program.inputs.items() if ref in wanted}
    return replace(program, inputs=inputs, steps=tuple(reversed(steps)))


def words(program: Program) -> Iterator[str]:
    """The words of all steps, those in bodies too."""

    def inside(steps: tuple[Step, ...]) -> Iterator[str]:
        for step in steps:
            yield step.word
            for arg in step.args:
                if isinstance(arg, Body):
                    yield from inside(arg.steps)

    return inside(program.steps)


def _shown(item: Any) -> str:
    if isinstance(item, (tuple, list)):
        inner = ", ".join(map(_shown, item))
        if isinstance(item, list):
            return f"[{inner}]"
        return f"({inner},)" if len(item) == 1 else f"({inner})"
    if isinstance(item, slice):
        return f"slice({item.start}, {item.stop}, {item.step})"
    if isinstance(item, Body):
        return f"lambda {', '.join(map(repr, item.takes))}: {_lines(item.steps)}{item.gives}"
    return repr(item)


def _lines(steps: tuple[Step, ...]) -> str:
    return "".join(f"{step.makes} := {_call(step)}; " for step in steps)


def _call(step: Step) -> str:
    named = [f"{key}={_shown(value)}" for key, value in step.named.items()]
    return f"{step.word}({', '.join([*map(_shown, step.args), *named])})"


def text(program: Program) -> str:
    """The function, to be read; main.py makes it again from its seed and number."""
    lines = [
        f"  {ref}: {program.floats if array.dtype.kind == 'f' else array.dtype}"
        f"{list(array.shape)} = {np.array2string(array.ravel(), precision=8, separator=', ')}"
        for ref, array in program.inputs.items()
    ]
    lines += [f"  {step.makes} = {_call(step)}" for step in program.steps]
    return "\n".join([*lines, f"  return {', '.join(map(repr, program.outputs))}"])
