# SPDX-License-Identifier: Apache-2.0
"""Random functions that reduce what they compute, over arrays that are large enough for one pass.

Operands are broadcast along any axes and results are read again or not. Each function runs with and
without the passes over rows, beside NumPy in float64.
"""

import random

import numpy as np
import pytest
import tenon as tn

SHAPES = (
    (5000,), (3, 2048), (70, 70), (80, 80), (16, 300), (2, 3, 1024), (20, 18, 16), (4, 5, 6, 64),
    (33, 1, 150), (1, 6144), (300, 17),
)  # fmt: skip
UNARY = ("tanh", "abs", "square", "negative")
BINARY = ("add", "subtract", "multiply", "maximum")
REDUCED = ("sum", "mean", "max", "min")


def broadcasts(shape: tuple, to: tuple) -> bool:
    try:
        return np.broadcast_shapes(shape, to) == to
    except ValueError:
        return False


class Function:
    """Steps over values by number, the same for any library: a name, operands, and options."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.shape = self.draw.choice(SHAPES)
        self.inputs = [self.shape, *(self._operand() for _ in range(self.draw.randint(0, 2)))]
        self.shapes, self.steps = list(self.inputs), []
        for _ in range(self.draw.randint(3, 9)):
            self._add_step()
        read = {value for _, values, _ in self.steps for value in values}
        made = range(len(self.inputs), len(self.shapes))
        self.results = [i for i in made if i not in read or self.draw.random() < 0.2]

    def _operand(self) -> tuple:
        kept = [n if self.draw.random() < 0.6 else 1 for n in self.shape]
        return tuple(kept[1:] if len(kept) > 1 and self.draw.random() < 0.2 else kept)

    def _add_step(self) -> None:
        usable = [i for i, shape in enumerate(self.shapes) if broadcasts(shape, self.shape)]
        x, y = self.draw.choice(usable), self.draw.choice(usable)
        kind = self.draw.choice(("unary", "binary", "binary", "reduced"))
        if kind == "unary":
            self.steps.append((self.draw.choice(UNARY), (x,), {}))
            self.shapes.append(self.shapes[x])
        elif kind == "binary" or not self.shapes[x]:
            self.steps.append((self.draw.choice(BINARY), (x, y), {}))
            self.shapes.append(np.broadcast_shapes(self.shapes[x], self.shapes[y]))
        else:
            self._add_reduction(x)

    def _add_reduction(self, x: int) -> None:
        shape, rank = self.shapes[x], len(self.shapes[x])
        axes = tuple(range(self.draw.randint(0, rank - 1), rank))  # the last ones
        if self.draw.random() < 0.2:
            axes = tuple(sorted(self.draw.sample(range(rank), self.draw.randint(1, rank))))
        keepdims = self.draw.random() < 0.6
        options = {"axis": axes, "keepdims": keepdims}
        self.steps.append((self.draw.choice(REDUCED), (x,), options))
        sizes = [1 if i in axes else size for i, size in enumerate(shape)]
        self.shapes.append(tuple(n for i, n in enumerate(sizes) if keepdims or i not in axes))

    def run(self, library, *inputs):
        values = list(inputs)
        for name, operands, options in self.steps:
            values.append(getattr(library, name)(*(values[i] for i in operands), **options))
        return tuple(values[i] for i in self.results)


def compiled(drawn: Function, **options):
    return tn.jit(lambda *x: drawn.run(tn, *x), backend="onednn", **options)


@pytest.mark.parametrize("seed", range(150))
def test_a_function_is_what_numpy_computes(seed: int) -> None:
    drawn = Function(seed)
    numbers = np.random.default_rng(seed)
    inputs = [numbers.uniform(-1, 1, shape).astype("f") for shape in drawn.inputs]
    wanted = drawn.run(np, *(x.astype("d") for x in inputs))
    for options in ({"threads": 2}, {"threads": 1, "without": ["rows with their reduction"]}):
        f = compiled(drawn, **options)
        for got, want in zip(f(*inputs), wanted, strict=True):
            most = 1 + np.max(np.abs(want), initial=0)
            np.testing.assert_allclose(got, want, rtol=0, atol=3e-5 * most)


def test_the_passes_are_tried() -> None:
    """So that the test above is about them."""
    used = 0
    for seed in range(150):
        drawn = Function(seed)
        f = compiled(drawn, threads=1)
        f(*(np.ones(shape, "f") for shape in drawn.inputs))
        kernels = [k for part in f.describe()["partitions"] for k in part.get("kernels", ())]
        used += any(kernel.startswith("tenon:rows") for kernel in kernels)
    assert used >= 20
