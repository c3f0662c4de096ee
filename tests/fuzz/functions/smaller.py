# SPDX-License-Identifier: Apache-2.0
"""Makes a function that fails smaller, as long as it fails under the same transform."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from growth import NUMPY
from library import values_of
from program import Body, Program, Ref, Step, needed, refs, rename


def _bodies_shrunk(program: Program) -> Iterator[Program]:
    """With a body that gives an earlier value of its own, or its first argument."""
    for at, step in enumerate(program.steps):
        for place, arg in enumerate(step.args):
            if not isinstance(arg, Body):
                continue
            for gives in [arg.takes[0], *(inner.makes for inner in arg.steps[:-1])]:
                if gives == arg.gives:
                    continue
                kept, wanted = [], {gives}
                for inner in reversed(arg.steps):
                    if inner.makes in wanted:
                        kept.append(inner)
                        wanted.update(refs(inner))
                body = replace(arg, steps=tuple(reversed(kept)), gives=gives)
                args = (*step.args[:place], body, *step.args[place + 1 :])
                steps = list(program.steps)
                steps[at] = replace(step, args=args)
                yield replace(program, steps=tuple(steps))


def _candidates(program: Program, values: dict[Ref, Any]) -> Iterator[Program]:
    if len(program.outputs) > 1:
        for output in program.outputs:
            yield replace(program, outputs=(output,))
    for step in reversed(program.steps):  # an earlier value instead of the last ones
        made = np.asarray(values[step.makes])
        if made.dtype.kind == "f" and (step.makes,) != program.outputs:
            yield replace(program, outputs=(step.makes,))
    for i, step in enumerate(program.steps):  # an input of its numbers instead of a step
        made = np.asarray(values[step.makes])
        inputs = {**program.inputs, step.makes: made}
        yield replace(program, inputs=inputs, steps=program.steps[:i] + program.steps[i + 1 :])
        for ref in refs(step):  # what it read instead of a step
            if (
                ref in values
                and np.asarray(values[ref]).shape == made.shape
                and (np.asarray(values[ref]).dtype == made.dtype)
            ):
                rest: tuple[Step, ...] = rename(program.steps[i + 1 :], step.makes, ref)
                outputs = tuple(dict.fromkeys(rename(program.outputs, step.makes, ref)))
                yield replace(program, steps=program.steps[:i] + rest, outputs=outputs)
    yield from _bodies_shrunk(program)


def smaller(program: Program, fails: Callable[[Program], bool], most: int = 120) -> Program:
    """fails is asked of at most so many functions."""
    asked = 0
    while True:
        values = values_of(NUMPY, program, list(program.inputs.values()))
        for candidate in _candidates(program, values):
            candidate = needed(candidate)
            if asked >= most or not _has_slopes(candidate) or _size(candidate) >= _size(program):
                continue
            asked += 1
            try:
                if not fails(candidate):
                    continue
            except Exception:  # an oracle does not take it: no smaller case of the same thing
                continue
            program = candidate
            break
        else:
            return program


def _has_slopes(program: Program) -> bool:
    """Something real goes in and comes out of steps, as every grown function has it."""
    real = any(array.dtype.kind == "f" for array in program.inputs.values())
    values = values_of(NUMPY, program, list(program.inputs.values()))
    made = {step.makes for step in program.steps}
    return real and any(
        ref in made and np.asarray(values[ref]).dtype.kind == "f" for ref in program.outputs
    )


def _size(program: Program) -> tuple[int, int]:
    inner = sum(len(a.steps) for s in program.steps for a in s.args if isinstance(a, Body))
    return len(program.steps) + inner, len(program.outputs) + len(program.inputs)
