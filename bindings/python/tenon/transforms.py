# SPDX-License-Identifier: Apache-2.0
"""Functions of functions: jit, and what the others are made of."""

from __future__ import annotations

import functools
from typing import Any

from .dispatch import Dispatched, Function, Stats
from .model import Model

__all__ = ["Compiled", "Function", "Stats", "jit"]


class Compiled(Dispatched):
    """A function that is traced and compiled when it is called with new types or shapes.

    Arguments: NumPy arrays, arrays of other libraries by DLPack, numbers, and tuples, lists and
    dicts of them. Results: NumPy arrays, in the structure that the function gives.
    """

    def trace(self, *args: Any, **named: Any) -> Model:
        """The graph for arguments of these types and shapes."""
        return Model(self._trace(args, named)[0])


def jit(f: Function | None = None, /, **options: Any) -> Any:
    """f, compiled: traced to a graph once for each set of types and shapes of its arguments.

        jf = tn.jit(lambda x: x.T @ (x - x.mean(0)))
        y = jf(x)                       # NumPy or DLPack in, NumPy out; [n, m] gives [m, m]
        jf.stats                        # Stats(compiles=1, hits=0, entries=1)

    Options: backend, precision, threads and a backend's own, as `Model.compile`; static_argnums:
    positions of arguments that are no arrays (part of the key, hashable); batch_axes: for each
    argument the axis whose size may vary without a new trace, or one for all; cache_size: how many
    graphs are kept (64), a warning says when they are too many; check_nan: FloatingPointError that
    names the node which made the first NaN.

    The function runs only while it is traced: it must not depend on numbers in its arguments
    (`if x > 0` raises, use tn.where), and arrays that it reads from outside become constants.
    Large results are written into memory of earlier results that nobody holds any longer.
    """
    if f is None:
        return functools.partial(jit, **options)
    inline = f._inline if isinstance(f, Compiled) else f
    return Compiled(inline, f, **options)
