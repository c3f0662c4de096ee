# SPDX-License-Identifier: Apache-2.0
"""Functions with a gradient of their own: custom_vjp."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from . import tree
from .arrays import zeros_like
from .eager import anywhere
from .errors import AlreadyExists, ArgumentError, TenonError
from .trace import Trace, Value, as_value, cast, current, users_line
from .transforms import Compiled

Function = Callable[..., Any]
_numbers = itertools.count()


class custom_vjp:  # noqa: N801, a function that reads like a decorator
    """A function whose gradient is given:

        @tn.custom_vjp
        def clipped(x): return x
        clipped.defvjp(lambda x: (x, None),                   # the result, and what backward needs
                       lambda kept, g: (tn.clip(g, -1, 1),))  # a gradient for each argument

    backward takes what forward kept and one cotangent for each result, in the structure of the
    result. None: no gradient for this argument. Both may use no traced values from outside.
    """

    def __init__(self, f: Function) -> None:
        self._f = f._inline if isinstance(f, Compiled) else f
        self._rule: tuple[Function, Function] | None = None
        functools.update_wrapper(self, f)
        self._name = f"{getattr(f, '__name__', 'f').strip('<>')}{next(_numbers)}"
        self._kinds: dict[Any, str] = {}  # names by what differs in the graphs

    def defvjp(self, forward: Function, backward: Function) -> None:
        """forward(*args) gives (result, kept); backward(kept, cotangents) a tuple of gradients."""
        self._rule = (forward, backward)
        self._kinds.clear()

    def __call__(self, *args: Any) -> Any:
        if self._rule is None:
            raise ArgumentError(f"{users_line()}: {self._name}: expected a gradient; use defvjp")
        return anywhere(self._call)(*args)

    def _call(self, *args: Any) -> Any:
        given = [current().lift(as_value(leaf)) for leaf in tree.flatten(args)[0]]
        body, (structure, results) = self._traced(given, args, self._f)
        with Trace() as vjp:
            gradients = self._backward(self._inputs(vjp, given, args), vjp, results, structure)
        self._alone(vjp)
        graph = vjp.finish(gradients)
        # Graphs that differ are functions of other names.
        key = (graph.text(data=True), body.text(data=True))
        name = self._kinds.setdefault(key, f"{self._name}_{len(self._kinds)}")
        try:
            current().native.add_function(name, body._native, graph._native)
        except TenonError as failed:
            if failed.code != AlreadyExists.code:  # called before
                raise
        made = current().node(name, given, outputs=len(results), domain="function")
        return tree.unflatten(structure, iter(made if isinstance(made, tuple) else (made,)))

    def _inputs(self, trace: Trace, given: Sequence[Value], args: tuple) -> tuple:
        made = [trace.input(f"x{i}", x.dtype, x.shape) for i, x in enumerate(given)]
        return tree.unflatten(tree.flatten(args)[2], iter(made))

    def _traced(self, given: Sequence[Value], args: tuple, f: Function) -> tuple[Any, Any]:
        with Trace() as body:
            leaves, _, structure = tree.flatten(f(*self._inputs(body, given, args)))
            results = [as_value(leaf) for leaf in leaves]
        self._alone(body)
        return body.finish(results), (structure, results)

    def _alone(self, trace: Trace) -> None:
        if trace.captured:
            raise ArgumentError(
                f"{users_line()}: {self._name}: expected a function of its arguments alone, got "
                f"one that uses {trace.captured[0]!r} from outside; make it an argument"
            )

    def _backward(self, args: tuple, vjp: Trace, results: list[Value], structure: Any) -> list[Any]:
        assert self._rule
        forward, backward = self._rule
        kept = forward(*args)
        if not isinstance(kept, tuple) or len(kept) != 2:
            raise ArgumentError(f"{self._name}: forward: expected (result, what backward needs)")
        weights = [vjp.input(f"cotangent{i}", r.dtype, r.shape) for i, r in enumerate(results)]
        made = backward(kept[1], tree.unflatten(structure, iter(weights)))
        if not isinstance(made, tuple) or len(made) != len(args):
            told = len(made) if isinstance(made, tuple) else type(made).__name__
            raise ArgumentError(
                f"{self._name}: backward: expected a tuple of {len(args)} gradients, got {told}"
            )
        out = []
        for arg, gradient in zip(args, made):
            leaves = tree.flatten(arg)[0]
            slopes = [None] * len(leaves) if gradient is None else tree.flatten(gradient)[0]
            if len(slopes) != len(leaves):
                raise ArgumentError(f"{self._name}: backward: expected gradients like arguments")
            out += [self._like(slope, leaf) for slope, leaf in zip(slopes, leaves)]
        return out

    def _like(self, slope: Any, leaf: Value) -> Value:
        if slope is None:
            return zeros_like(leaf)
        value = cast(as_value(slope), leaf.dtype)
        if value.shape != leaf.shape:
            raise ArgumentError(
                f"{self._name}: backward: expected a gradient like {leaf!r}, got {value!r}"
            )
        return value
