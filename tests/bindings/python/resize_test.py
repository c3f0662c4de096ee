# SPDX-License-Identifier: Apache-2.0
"""Resize by nearest elements to given sizes, against exact fractions: coordinates that lie on a
half, or on an element, are common there and must not be missed by a rounding."""

import math
from fractions import Fraction

import numpy as np
import pytest
import tenon

HALF = Fraction(1, 2)
#: i: an output coordinate; a, b: the sizes before and after
COORDINATES = {
    "half_pixel": lambda i, a, b: (i + HALF) * a / b - HALF,
    "asymmetric": lambda i, a, b: Fraction(i * a, b),
    "align_corners": lambda i, a, b: Fraction(i * (a - 1), b - 1) if b > 1 else Fraction(0),
    "pytorch_half_pixel": lambda i, a, b: (i + HALF) * a / b - HALF if b > 1 else Fraction(0),
}
ROUND = {
    "floor": math.floor,
    "ceil": math.ceil,
    "round_prefer_floor": lambda x: math.ceil(x - HALF),
    "round_prefer_ceil": lambda x: math.floor(x + HALF),
}


def plan_of(coordinates, rounding, backend):
    graph = tenon.Graph()
    x = graph.add_input("x", "float32", [1, 1, "a", 1])
    sizes = graph.add_input("sizes", "int64", [4])
    options = {"coordinate_transformation_mode": coordinates, "nearest_mode": rounding}
    y = graph.add_node("Resize", [x, None, None, sizes], mode="nearest", **options)
    graph.add_output("y", y)
    return graph.build().compile(backend=backend, threads=1, plan_cache=1)


@pytest.mark.parametrize("backend", ["reference", "onednn"])
@pytest.mark.parametrize("rounding", ROUND)
@pytest.mark.parametrize("coordinates", COORDINATES)
def test_the_nearest_element_is_the_exact_one(coordinates, rounding, backend):
    plan = plan_of(coordinates, rounding, backend)
    for a in (1, 2, 3, 5, 7, 12, 33):
        for b in (1, 2, 3, 4, 7, 10, 17, 39):
            where = [ROUND[rounding](COORDINATES[coordinates](i, a, b)) for i in range(b)]
            expected = [min(max(at, 0), a - 1) for at in where]
            x = np.arange(a, dtype="f").reshape(1, 1, a, 1)
            y = plan(x, np.array([1, 1, b, 1]))[0].ravel().tolist()
            assert y == expected, f"{a} -> {b}"
