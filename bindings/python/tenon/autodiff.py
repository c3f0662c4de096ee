# SPDX-License-Identifier: Apache-2.0
"""Gradients and batches of functions: grad, value_and_grad, vjp, jvp, vmap.

Each traces the function as a graph of its own, lets a pass of the plugin `autodiff` change it, and
puts the result into the trace outside; called with arrays, it is compiled like `tn.jit`. So they
compose in any order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from . import tree
from .arrays import zeros_like
from .dispatch import as_input, type_of
from .errors import InvalidArgument
from .model import Model
from .trace import Trace, Value, as_value, cast, current, tracing, users_line
from .transforms import Compiled

Function = Callable[..., Any]


class Inner:
    """f traced as a graph of its own: the chosen leaves of its arguments are inputs, the others it
    gets as they are, and what it uses of the trace outside is captured as further inputs."""

    def __init__(self, f: Function, args: Sequence[Any], chosen: Sequence[Any], named: Any = None):
        """chosen: for each argument what its leaves become, as as_input takes it, or None."""
        call = f._inline if isinstance(f, Compiled) else f
        self.given: list[Any] = []  # what the inputs stand for
        with Trace() as trace:
            made = [
                arg if how is None else self._take(trace, arg, f"x{i}", how)
                for i, (arg, how) in enumerate(zip(args, chosen))
            ]
            self.result = call(*made, **(named or {}))
            leaves, _, self.structure = tree.flatten(self.result)
            self.results = [as_value(leaf) for leaf in leaves]
            self.model = Model(trace.finish(self.results))
            self.captured = trace.captured

    def _take(self, trace: Trace, arg: Any, name: str, how: Function) -> Any:
        leaves, names, structure = tree.flatten(arg, name)
        self.given += leaves
        made = [how(trace, leaf, leaf_name) for leaf, leaf_name in zip(leaves, names)]
        return tree.unflatten(structure, iter(made))

    def splice(self, model: Model, more: Sequence[Any] = ()) -> list[Value]:
        """The results of the changed graph in the trace outside; its inputs are those of the
        function, what was captured, and then more."""
        inputs = [as_value(x) for x in self.given] + self.captured + [as_value(x) for x in more]
        return current().splice(model._native, inputs)


def _positions(argnums: int | Sequence[int], count: int, who: str) -> list[int]:
    positions = [argnums] if isinstance(argnums, int) else list(argnums)
    for position in positions:
        if not -count <= position < count:
            raise InvalidArgument(
                f"{users_line()}: {who}: argnums: expected positions of {count} arguments, "
                f"got {position}"
            )
    return [position % count for position in positions]


def _differentiated(who: str) -> Function:
    def take(trace: Trace, leaf: Any, name: str) -> Value:
        dtype = type_of(leaf)[0]
        if not dtype.startswith(("float", "bfloat")):
            raise InvalidArgument(
                f"{users_line()}: {who}: {name}: expected a float type to differentiate by, got "
                f"{dtype}; choose others in argnums"
            )
        return as_input(trace, leaf, name, None)

    return take


def _value_and_grad(
    f: Function,
    args: tuple,
    named: dict[str, Any],
    argnums: int | Sequence[int],
    has_aux: bool,
    who: str,
) -> tuple[Any, Any, Any]:
    """The value, what came beside it, and the gradient."""
    positions = _positions(argnums, len(args), who)
    take = _differentiated(who)
    chosen = [take if i in positions else None for i in range(len(args))]
    inner = Inner(f, args, chosen, named)
    if has_aux and not (isinstance(inner.result, tuple) and len(inner.result) == 2):
        raise InvalidArgument(f"{who}: has_aux: expected the function to give (value, more)")
    value = inner.results[0] if inner.results else None
    alone = tree.is_leaf(tree.flatten(inner.result[0] if has_aux else inner.result)[2])
    if value is None or not alone or value.shape != () or not value.dtype.startswith(FLOATS):
        raise InvalidArgument(
            f"{users_line()}: {who}: expected the function to give one float scalar, got "
            f"{value!r}; reduce it with tn.sum or tn.mean, or use tn.vjp"
        )
    count = len(inner.given)
    model = inner.model.apply(
        "autodiff.value_and_grad", argnums=list(range(count)), has_aux=has_aux
    )
    made = inner.splice(model)
    n_results = len(inner.results)
    out = tree.unflatten(inner.structure, iter(made[:n_results]))
    rest = iter(made[n_results:])
    by_position = {
        i: tree.map_leaves(lambda _: next(rest), args[i]) for i in sorted(set(positions))
    }
    if isinstance(argnums, int):
        gradient = by_position[positions[0]]
    else:
        gradient = tuple(by_position[i] for i in positions)
    return (*out, gradient) if has_aux else (out, None, gradient)


FLOATS = ("float", "bfloat")


def grad(
    f: Function, /, argnums: int | Sequence[int] = 0, has_aux: bool = False, **options: Any
) -> Any:
    """A function that gives the gradient of f, which gives one float scalar.

        tn.grad(lambda x, y: x**2 + y**2)(1.5, 2.5)                    # 3.0
        tn.grad(lambda x, y: x**2 + y**2, argnums=(0, 1))(1.5, 2.5)    # (3.0, 5.0)

    argnums: by which arguments; a tuple gives a tuple. Arguments may be trees: the gradient has the
    same structure and shapes. has_aux: f gives (value, more), the result is (gradient, more). Other
    options are those of `tn.jit`.
    """

    def inline(*args: Any, **named: Any) -> Any:
        _, aux, gradient = _value_and_grad(f, args, named, argnums, has_aux, "grad")
        return (gradient, aux) if has_aux else gradient

    return Compiled(inline, f, **options)


def value_and_grad(
    f: Function, /, argnums: int | Sequence[int] = 0, has_aux: bool = False, **options: Any
) -> Any:
    """As `tn.grad`, but gives (value, gradient), with has_aux ((value, more), gradient)."""

    def inline(*args: Any, **named: Any) -> Any:
        value, aux, gradient = _value_and_grad(f, args, named, argnums, has_aux, "value_and_grad")
        return ((value, aux) if has_aux else value), gradient

    return Compiled(inline, f, **options)


@functools.lru_cache(maxsize=128)
def _pulled(f: Function) -> Compiled:
    return Compiled(lambda primals, cotangents: _pull(f, primals, cotangents), f)


@functools.lru_cache(maxsize=128)
def _plain(f: Function) -> Compiled:
    return Compiled(f._inline if isinstance(f, Compiled) else f, f)


def _pull(f: Function, primals: tuple, cotangents: Any) -> tuple:
    inner = Inner(f, primals, [_differentiated("vjp")] * len(primals))
    model = inner.model.apply("autodiff.vjp", argnums=list(range(len(inner.given))))
    given = tree.flatten(cotangents)[0]
    if len(given) != len(inner.results):
        raise InvalidArgument(
            f"{users_line()}: vjp: expected one cotangent for each of {len(inner.results)} "
            f"results, got {len(given)}"
        )
    floats = [
        cast(as_value(c), r.dtype)
        for c, r in zip(given, inner.results)
        if r.dtype.startswith(FLOATS)
    ]
    made = inner.splice(model, floats)
    return tree.unflatten(tree.flatten(primals)[2], iter(made[len(inner.results) :]))


def vjp(f: Function, /, *primals: Any) -> tuple[Any, Function]:
    """(f(*primals), pull): pull takes a tree like the result, a weight for each number in it, and
    gives the gradient of their weighted sum, a tuple with a tree for each of the primals."""
    if tracing():
        return f(*primals), lambda cotangents: _pull(f, primals, cotangents)
    return _plain(f)(*primals), lambda cotangents: _pulled(f)(primals, cotangents)


@functools.lru_cache(maxsize=128)
def _pushed(f: Function) -> Compiled:
    return Compiled(lambda primals, tangents: _push(f, primals, tangents), f)


def _push(f: Function, primals: tuple, tangents: tuple) -> tuple[Any, Any]:
    inner = Inner(f, primals, [_differentiated("jvp")] * len(primals))
    given = tree.flatten(tangents)[0]
    if len(given) != len(inner.given):
        raise InvalidArgument(
            f"{users_line()}: jvp: expected {len(inner.given)} tangents, as many as primals, got "
            f"{len(given)}"
        )
    model = inner.model.apply("autodiff.jvp", argnums=list(range(len(inner.given))))
    moved = [cast(as_value(t), type_of(x)[0]) for t, x in zip(given, inner.given)]
    made = inner.splice(model, moved)
    count = len(inner.results)
    out = tree.unflatten(inner.structure, iter(made[:count]))
    floats = iter(made[count:])
    # Integers and truth values do not change with the primals.
    slopes = [next(floats) if x.dtype.startswith(FLOATS) else zeros_like(x) for x in made[:count]]
    return out, tree.unflatten(inner.structure, iter(slopes))


def jvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any], /) -> tuple[Any, Any]:
    """(f(*primals), its change when the primals move along tangents): tangents are trees like the
    primals, the change one like the result. `jvp` of a `grad` is a Hessian-vector product."""
    call = _push if tracing() else (lambda f, *both: _pushed(f)(*both))
    return call(f, tuple(primals), tuple(tangents))


def vmap(
    f: Function, /, in_axes: Any = 0, out_axes: Any = 0, random: str = "error", **options: Any
) -> Any:
    """f of one example becomes a function of many at once, without a loop.

        tn.vmap(lambda a, b: a * b)(np.array([1, 2]), np.array([4, 5]))    # [4, 10]

    in_axes: which axis of each argument counts the examples, None: the argument is the same for
    all; one for all arguments or a tuple, whose entries may be trees like the argument. out_axes:
    where that axis goes in the results. random: what draws without a key (`tn.dropout`) is refused
    ("error"), drawn once for all examples ("same"), or drawn for each ("different"). Other options
    are those of `tn.jit`.
    """

    def inline(*args: Any, **named: Any) -> Any:
        return _vmap(f, args, named, in_axes, out_axes, random)

    return Compiled(inline, f, **options)


def _vmap(
    f: Function, args: tuple, named: dict[str, Any], in_axes: Any, out_axes: Any, random: str
) -> Any:
    spread_axes = tree.spread(
        tuple(in_axes) if isinstance(in_axes, list) else in_axes, args, "vmap: in_axes"
    )
    axes = iter(spread_axes)
    sizes: dict[int, str] = {}
    mapped: list[int] = []

    def one(trace: Trace, leaf: Any, name: str) -> Value:
        axis = next(axes)
        if axis is None:
            # A value from outside is captured where it is used, so after all inputs.
            return leaf if isinstance(leaf, Value) else as_value(leaf)
        dtype, shape, weak = type_of(leaf)
        if not -len(shape) <= axis < len(shape):
            raise InvalidArgument(
                f"{users_line()}: vmap: {name}: expected an array with axis {axis}, got {dtype}"
                f"{list(shape)}; in_axes=None leaves an argument as it is"
            )
        position = axis % len(shape)
        sizes.setdefault(shape[position], name)
        mapped.append(axis)
        return trace.input(name, dtype, shape[:position] + shape[position + 1 :], weak)

    inner = Inner(f, args, [one] * len(args), named)
    if len(sizes) > 1:
        listed = ", ".join(f"{size} in {name}" for size, name in sizes.items())
        raise InvalidArgument(f"{users_line()}: vmap: expected one size of the axis, got {listed}")
    if not sizes:
        raise InvalidArgument(f"{users_line()}: vmap: expected one axis in in_axes, got None")
    inner.given = [x for x, axis in zip(inner.given, spread_axes) if axis is not None]
    back = tree.spread(out_axes, inner.result, "vmap: out_axes")
    words = [str(axis) for axis in mapped] + ["none"] * len(inner.captured)
    model = inner.model.apply(
        "autodiff.vmap",
        axis_size=next(iter(sizes)),
        in_axes=", ".join(words),
        out_axes=", ".join("none" if axis is None else str(axis) for axis in back),
        random=random,
    )
    return tree.unflatten(inner.structure, iter(inner.splice(model)))
