# SPDX-License-Identifier: Apache-2.0
"""Whether what Tenon computed is what an oracle did, as far as the element type can say.

How far rounding may take a result is measured: the oracle runs again with the numbers of each step
times 1 + noise. A result may differ by the tolerance of its type times 1 + the largest number, and
by six times what noise did; what noise moves by a tenth is not compared. What still differs is
asked again with louder noise that also moves exact numbers, off kinks, jumps and ties.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tenon_subject
from growth import draw_input
from oracles import MOST_OF_HESSIAN, TRANSFORMS, Case, noise_for
from program import Program

# Of each element type: what a result may differ by, and the noise that stands for its rounding.
TYPES = {
    "float64": (1e-7, 1e-15),
    "float32": (1e-4, 2e-7),
    "float16": (3e-2, 2e-3),
    "bfloat16": (2e-1, 1e-2),
}
# What Tenon says that it does not do, and why; JAX has no such slopes at all (`while_loop`).
REFUSED = {
    "the number of iterations differs by example, and scan outputs": "slopes of a while_loop whose "
    "steps differ by example",
}
KINDS = {"f": "f", "i": "i", "u": "i", "b": "b"}


@dataclass
class Verdict:
    finding: str = ""
    refused: str = ""  # a transform that Tenon says it has not
    values: int = 0  # elements of all results
    compared: int = 0


def case_of(program: Program, seed: int, number: int, wanted: tuple[str, ...]) -> Case:
    """The program with a batch, axes and directions; also of one that was made smaller."""
    random = np.random.default_rng([seed, number, 1])
    size = int(random.choice([1, 2, 3]))
    inputs, batch, axes, tangents = list(program.inputs.values()), [], [], []
    for ref, x in program.inputs.items():
        own = np.random.default_rng([seed, number, 2, ref.number])
        axis = None if own.random() < 0.25 else int(own.integers(-x.ndim - 1, x.ndim + 1))
        axes.append(axis)
        kind = "float" if x.dtype.kind == "f" else "b" if x.dtype.kind == "b" else x.dtype.name
        rows = [x] + [draw_input(own, kind, x.shape) for _ in range(size - 1)]
        batch.append(x if axis is None else np.stack(rows, axis))
        if x.dtype.kind == "f":
            tangents.append(np.round(own.normal(size=x.shape) * 64) / 64)
    if all(axis is None for axis in axes):
        axes[0] = 0
        batch[0] = np.stack([inputs[0]] * size)
    case = Case(program, inputs, batch, axes, tangents, wanted)
    if not case.real or case.inputs[case.curved].size > MOST_OF_HESSIAN:
        case = replace(case, transforms=tuple(name for name in wanted if name != "hessian"))
    return case


def _spread(base: np.ndarray, shaken: list[np.ndarray]) -> np.ndarray:
    """How far noise takes each element; infinite where a run is not finite."""
    with np.errstate(all="ignore"):
        moves = [np.abs(x.astype("f8") - base.astype("f8")) for x in shaken]
    most = functools.reduce(np.maximum, moves)
    return np.where(np.isfinite(most), most, np.inf)


def _differs(
    got: np.ndarray, base: np.ndarray, shaken: list[np.ndarray], tolerance: float
) -> tuple[str, int]:
    """What is wrong with a result, or nothing, and how many elements were compared."""
    if got.shape != base.shape or KINDS[got.dtype.kind] != KINDS[base.dtype.kind]:
        return f"{got.dtype}{list(got.shape)}, expected {base.dtype}{list(base.shape)}", 0
    if not base.size:
        return "", 0
    noise = _spread(base, shaken)
    if base.dtype.kind != "f":
        decided, slack = noise == 0, np.zeros(base.shape)
    else:
        known = np.where(np.isfinite(noise), np.abs(base), 0)
        scale = 1 + known.max()
        decided, slack = noise <= 0.1 * scale, tolerance * scale + 6 * noise
        decided &= np.isfinite(base) & (np.abs(base) < 1e4)
    with np.errstate(all="ignore"):
        off = np.abs(got.astype("f8") - base.astype("f8"))
    wrong = decided & ~(off <= slack)
    if not wrong.any():
        return "", int(decided.sum())
    at = int(np.argmax(wrong))
    return (
        f"{int(wrong.sum())} of {wrong.size} elements, the first at {at}: Tenon "
        f"{got.ravel()[at]}, expected {base.ravel()[at]}, tolerance {slack.ravel()[at]:.3g}",
        int(decided.sum()),
    )


class Judge:
    def __init__(self, oracle: Any, backend: str, seed: int) -> None:
        self.oracle, self.backend, self.seed = oracle, backend, seed

    def judge(self, program: Program, number: int, wanted: tuple[str, ...] = TRANSFORMS) -> Verdict:
        case = case_of(program, self.seed, number, wanted)
        tolerance, noise = TYPES[program.floats]
        random = np.random.default_rng([self.seed, number, 3])
        base = self.oracle.expects(case, noise_for(case, random, 0, 0))
        quiet = self._runs(case, random, noise, 0, 2)
        verdict = Verdict()
        for name in case.transforms:
            if base[name] is None:
                continue
            try:
                got = tenon_subject.compute(name, case, self.backend)
            except Exception as refused:  # whatever is raised: the oracle computed it
                known = [why for text, why in REFUSED.items() if text in str(refused)]
                if known:
                    verdict.refused = known[0]
                    continue
                verdict.finding = f"{name}: {type(refused).__name__}: {refused}"
                return verdict
            got = self.oracle.project(name, case, got)
            if len(got) != len(base[name]):
                verdict.finding = f"{name}: {len(got)} results, expected {len(base[name])}"
                return verdict
            for i, (mine, wants) in enumerate(zip(got, base[name])):
                runs = [run[name][i] for run in quiet]
                wrong, compared = _differs(mine, wants, runs, tolerance)
                for count in (6, 20):  # one of few may well move all to one side of a kink
                    if wrong:
                        loud = self._runs(case, random, 8 * noise, 8 * noise, count)
                        runs += [run[name][i] for run in loud]
                        wrong, compared = _differs(mine, wants, runs, tolerance)
                verdict.values += wants.size
                verdict.compared += compared
                if wrong:
                    verdict.finding = f"{name}: result {i}: {wrong}"
                    return verdict
        return verdict

    def _runs(self, case: Case, random: Any, times: float, plus: float, count: int) -> list[Any]:
        return [
            self.oracle.expects(case, noise_for(case, random, times, plus)) for _ in range(count)
        ]
