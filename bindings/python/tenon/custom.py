# SPDX-License-Identifier: Apache-2.0
"""Functions with a gradient of their own: custom_vjp, and checkpoint, which is one."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from . import tree
from .arrays import zeros_like
from .autodiff import FLOATS
from .eager import anywhere_anew, is_array
from .errors import AlreadyExists, ArgumentError, TenonError
from .model import Model
from .trace import Trace, Value, as_operand, as_value, cast, current, users_line
from .transforms import Compiled

Function = Callable[..., Any]
_numbers = itertools.count()


class _Names:
    """Names of what one function became: graphs that differ are functions of other names. A
    function that reads other numbers in each step becomes many, of which the last are known."""

    _KEPT = 64

    def __init__(self, label: str) -> None:
        self._label = label
        self._known: dict[Any, str] = {}
        self._count = itertools.count()

    def of(self, key: Any) -> str:
        if key not in self._known:
            if len(self._known) == self._KEPT:
                del self._known[next(iter(self._known))]
            self._known[key] = f"{self._label}_{next(self._count)}"
        return self._known[key]


def _called(names: _Names, body: Model, gradient: Model, given: Sequence[Value]) -> Iterator[Value]:
    """What a function of the graph with a gradient graph gives."""
    name = names.of((gradient.text(data=True), body.text(data=True)))
    try:
        current().native.add_function(name, body._native, gradient._native)
    except TenonError as failed:
        if failed.code != AlreadyExists.code:  # called before
            raise
    made = current().node(name, given, outputs=len(body.outputs), domain="function")
    return iter(made if isinstance(made, tuple) else (made,))


def checkpoint(f: Function, /) -> Function:
    """f, whose values in between are not kept for its gradient: they are computed again from its
    arguments when the gradient is taken. Less memory for another forward computation; values and
    gradients are the same, but for the order of sums where calls share an argument.

        block = tn.checkpoint(lambda p, x: x + tn.gelu(x @ p["a"]) @ p["b"])
        tn.grad(lambda p: block(p["2"], block(p["1"], x)).sum())

    What f uses from outside is an argument too. What draws without a key draws the same again, but
    not what it would draw outside of a checkpoint. For whole networks there is the pass
    `autodiff.recompute`, which chooses what is computed again.
    """
    call = f._inline if isinstance(f, Compiled) else f
    kinds = _Names(f"{getattr(f, '__name__', 'f').strip('<>')}{next(_numbers)}")

    @functools.wraps(f)
    def inline(*args: Any, **named: Any) -> Any:
        leaves, names, structure = tree.flatten((args, named))
        positions = [i for i, leaf in enumerate(leaves) if is_array(leaf)]
        given = [as_value(leaves[i]) for i in positions]
        with Trace() as trace:
            for i, x in zip(positions, given):
                leaves[i] = trace.input(names[i], x.dtype, x.shape, x.weak)
            filled, more = tree.unflatten(structure, iter(leaves))
            results, _, shape_of_results = tree.flatten(call(*filled, **more))
            body = Model(trace.finish([as_value(x) for x in results]))
        given += [current().lift(x) for x in trace.captured]
        # Calls of one function draw other numbers each.
        body = body.apply("autodiff.seed_draws", salt=f"#{_calls(current())}")
        made = _called(kinds, body, _recomputed(body), given)
        return tree.unflatten(shape_of_results, made)

    return anywhere_anew(inline)


def _calls(trace: Trace) -> int:
    """How often this was asked of the trace before."""
    trace.n_checkpoints += 1
    return trace.n_checkpoints


def _recomputed(body: Model) -> Model:
    """The gradient graph of a function by its inputs and cotangents alone: nothing of the body is
    computed before the cotangents are there."""
    floats = [i for i, port in enumerate(body.inputs) if port.dtype.startswith(FLOATS)]
    with Trace() as trace:
        given = [trace.input(port.name, port.dtype, port.shape) for port in body.inputs]
        weights = [
            trace.input(f"cotangent{i}", port.dtype, port.shape)
            for i, port in enumerate(body.outputs)
        ]
        late = [trace.node("Barrier", [x, *weights], domain="tenon") for x in given]
        by = [w for w in weights if w.dtype.startswith(FLOATS)]
        out = [zeros_like(x) for x in given]
        if floats and by:
            slopes = body.apply("autodiff.vjp", argnums=floats)
            made = trace.splice(slopes._native, late + by)
            for position, slope in zip(floats, made[len(body.outputs) :]):
                out[position] = slope
        return Model(trace.finish(out))


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
        self._kinds = _Names(self._name)

    def defvjp(self, forward: Function, backward: Function) -> None:
        """forward(*args) gives (result, kept); backward(kept, cotangents) a tuple of gradients."""
        self._rule = (forward, backward)

    def __call__(self, *args: Any) -> Any:
        if self._rule is None:
            raise ArgumentError(f"{users_line()}: {self._name}: expected a gradient; use defvjp")
        return anywhere_anew(self._call)(*args)

    def _call(self, *args: Any) -> Any:
        given = [current().lift(as_operand(leaf)) for leaf in tree.flatten(args)[0]]
        body, (structure, results) = self._traced(given, args, self._f)
        with Trace() as vjp:
            gradients = self._backward(self._inputs(vjp, given, args), vjp, results, structure)
        self._alone(vjp)
        graph = Model(vjp.finish(gradients))
        return tree.unflatten(structure, _called(self._kinds, body, graph, given))

    def _inputs(self, trace: Trace, given: Sequence[Value], args: tuple) -> tuple:
        made = [trace.input(f"x{i}", x.dtype, x.shape, x.weak) for i, x in enumerate(given)]
        return tree.unflatten(tree.flatten(args)[2], iter(made))

    def _traced(self, given: Sequence[Value], args: tuple, f: Function) -> tuple[Any, Any]:
        with Trace() as body:
            leaves, _, structure = tree.flatten(f(*self._inputs(body, given, args)))
            results = [as_value(leaf) for leaf in leaves]
        self._alone(body)
        return Model(body.finish(results)), (structure, results)

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
            got = len(made) if isinstance(made, tuple) else type(made).__name__
            raise ArgumentError(
                f"{self._name}: backward: expected a tuple of {len(args)} gradients, got {got}"
            )
        out = []
        for arg, gradient in zip(args, made):
            leaves, _, structure = tree.flatten(arg)
            slopes = [None] * len(leaves)
            if gradient is not None:
                what = f"{self._name}: backward: gradient"
                slopes = tree.leaves_like(structure, gradient, what, optional=True)
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
