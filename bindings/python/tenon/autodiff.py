# SPDX-License-Identifier: Apache-2.0
"""Gradients and batches of functions: grad, value_and_grad, vjp, jvp, vmap.

Each traces the function as a graph of its own, lets a pass of the plugin `autodiff` change it, and
puts the result into the trace outside; called with arrays, it is compiled like `tn.jit`. So they
compose in any order.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _core, tree
from .arrays import astype, zeros_like
from .dispatch import as_input, float_type, type_of
from .eager import plan_of
from .errors import InvalidArgument
from .events import session
from .model import Model
from .trace import Trace, Value, as_value, current, tracing, users_line
from .transforms import Compiled
from .types import Dim

Function = Callable[..., Any]


class Inner:
    """f traced as a graph of its own: the chosen leaves of its arguments are inputs, the others it
    gets as they are, and what it uses of the trace outside is captured as further inputs."""

    def __init__(
        self,
        f: Function,
        args: Sequence[Any],
        chosen: Sequence[Any],
        named: Any = None,
        chosen_named: Any = None,
    ):
        """chosen: for each argument what its leaves become, as as_input takes it, or None;
        chosen_named: the same for those of these names."""
        call = f._inline if isinstance(f, Compiled) else f
        self.given: list[Any] = []  # what the inputs stand for
        self._plans: dict[Model, Any] = {}
        floats = None if tracing() else float_type(tree.flatten(args)[0])
        with Trace() as trace:
            trace.floats = floats or trace.floats
            made = [
                arg if how is None else self._take(trace, arg, f"x{i}", how)
                for i, (arg, how) in enumerate(zip(args, chosen))
            ]
            named = dict(named or {})
            for name, how in (chosen_named or {}).items():
                named[name] = self._take(trace, named[name], name, how)
            self.result = call(*made, **named)
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

    def run(self, model: Model, more: Sequence[Any] = ()) -> list[Any]:
        """As splice; outside of a trace its arrays."""
        is_outlived = self.captured or any(isinstance(x, Value) for x in self.given)
        if tracing() or is_outlived:
            return self.splice(model, more)
        if model not in self._plans:
            self._plans[model] = plan_of(model._native)
        return self._plans[model].arrays(*self.given, *more)

    def floats(self) -> list[int]:
        """The positions of the inputs that one can differentiate by."""
        return [i for i, x in enumerate(self.given) if type_of(x)[0].startswith(FLOATS)]


def is_one(argnums: int | Sequence[int]) -> bool:
    """Whether it is one position, for which the result is no tuple."""
    return isinstance(argnums, (int, np.integer))


def _positions(argnums: int | Sequence[int], count: int, who: str) -> list[int]:
    positions = [argnums] if is_one(argnums) else [operator.index(i) for i in argnums]
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
    if is_one(argnums):
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


def _moving(f: Function, primals: tuple, who: str) -> Inner:
    """f by all of its arguments; to derivatives integers and truth values are constants."""

    def take(trace: Trace, leaf: Any, name: str) -> Value:
        return as_input(trace, leaf, name, None)

    inner = Inner(f, primals, [take] * len(primals))
    if inner.given and not inner.floats():
        raise InvalidArgument(
            f"{users_line()}: {who}: expected an argument of a float type to differentiate by, got "
            f"{', '.join(type_of(x)[0] for x in inner.given)}"
        )
    return inner


def _kept(leaf: Any) -> Any:
    """What an argument is now: whoever gave an array may go on writing to it."""
    if isinstance(leaf, Value) or type(leaf) in (bool, int, float):
        return leaf
    return np.array(_core.as_tensor(session(), leaf))


def _like(given: Any, dtype: str, shape: Sequence[Dim], what: str) -> Any:
    """What is given for a value: it has its shape, and gets its type."""
    if given is None:
        raise InvalidArgument(f"{users_line()}: {what}: expected an array for each float, got None")
    got_dtype, got, _ = type_of(given)
    known = [x == y for x, y in zip(got, shape) if isinstance(x, int) and isinstance(y, int)]
    if len(got) != len(shape) or not all(known):
        raise InvalidArgument(
            f"{users_line()}: {what}: expected the shape {list(shape)}, got {list(got)}"
        )
    return given if got_dtype == dtype else astype(given, dtype)


def vjp(f: Function, /, *primals: Any) -> tuple[Any, Function]:
    """(f(*primals), pull): pull takes a tree like the result, a weight for each number in it, and
    gives the gradient of their weighted sum, a tuple with a tree for each of the primals, with None
    for integers. f is traced when vjp is called, each time."""
    primals = tree.map_leaves(_kept, primals)
    inner = _moving(f, primals, "vjp")
    results, structure = inner.results, tree.flatten(primals)[2]
    positions = inner.floats()
    kept: list[Model] = []

    def pull(cotangents: Any) -> tuple:
        what = "vjp: cotangents"
        given = tree.leaves_like(
            inner.structure, cotangents, f"{users_line()}: {what}", optional=True
        )
        weights = [
            _like(c, r.dtype, r.shape, what)
            for c, r in zip(given, results)
            if r.dtype.startswith(FLOATS)
        ]
        if not kept:
            kept.append(inner.model.apply("autodiff.vjp", argnums=positions))
        slopes = dict(zip(positions, inner.run(kept[0], weights)[len(results) :]))
        return tree.unflatten(structure, iter([slopes.get(i) for i in range(len(inner.given))]))

    made = inner.run(inner.model) if results else []
    return tree.unflatten(inner.structure, iter(made)), pull


def jvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any], /) -> tuple[Any, Any]:
    """(f(*primals), its change when the primals move along tangents): tangents are trees like the
    primals, with None for integers, the change one like the result. `jvp` of a `grad` is a
    Hessian-vector product. f is traced on each call."""
    primals, what = tuple(primals), "jvp: tangents"
    inner = _moving(f, primals, "jvp")
    structure = tree.flatten(primals)[2]
    given = tree.leaves_like(structure, tuple(tangents), f"{users_line()}: {what}", optional=True)
    positions = inner.floats()
    for i, tangent in enumerate(given):
        if i not in positions and tangent is not None:
            raise InvalidArgument(
                f"{users_line()}: {what}: expected None for an argument of "
                f"{type_of(inner.given[i])[0]}, which does not move"
            )
    moved = [_like(given[i], *type_of(inner.given[i])[:2], what) for i in positions]
    model = inner.model.apply("autodiff.jvp", argnums=positions)
    made = inner.run(model, moved)
    count = len(inner.results)
    out = tree.unflatten(inner.structure, iter(made[:count]))
    floats = iter(made[count:])
    # Integers and truth values do not change with the primals.
    is_float = [x.dtype.startswith(FLOATS) for x in inner.results]
    slopes = [next(floats) if moves else zeros_like(x) for moves, x in zip(is_float, made)]
    return out, tree.unflatten(inner.structure, iter(slopes))


def vmap(
    f: Function, /, in_axes: Any = 0, out_axes: Any = 0, random: str = "error", **options: Any
) -> Any:
    """f of one example becomes a function of many at once, without a loop.

        tn.vmap(lambda a, b: a * b)(np.array([1, 2]), np.array([4, 5]))    # [4, 10]

    in_axes: which axis of each argument counts the examples, None: the argument is the same for
    all; one for all arguments or a tuple, whose entries may be trees like the argument. Arguments
    by keyword are counted along axis 0. out_axes: where that axis goes in the results. random: what
    draws without a key (`tn.dropout`) is refused ("error"), drawn once for all examples ("same"),
    or drawn for each ("different"). Other options are those of `tn.jit`.
    """

    def inline(*args: Any, **named: Any) -> Any:
        plain = tuple(None if i in made.static else arg for i, arg in enumerate(args))
        mapped = {name: arg for name, arg in named.items() if name not in made.static_names}
        axes = tree.spread(
            tuple(in_axes) if isinstance(in_axes, list) else in_axes, plain, "vmap: in_axes"
        )
        axes += [0] * len(tree.flatten(mapped)[0])
        mapping = _Mapping(axes)
        chosen = [None if i in made.static else mapping.take for i in range(len(args))]
        inner = Inner(f, args, chosen, named, dict.fromkeys(mapped, mapping.take))
        return _mapped(inner, mapping, out_axes, random)

    made = Compiled(inline, f, **options)
    return made


class _Mapping:
    """Which axis of each leaf counts the examples, and how many they are."""

    def __init__(self, axes: list[int | None]) -> None:
        self.axes = axes
        self._left = iter(axes)
        self.sizes: dict[Dim, str] = {}  # with the name of the leaf that has it
        self.mapped: list[int] = []

    def take(self, trace: Trace, leaf: Any, name: str) -> Value:
        axis = next(self._left)
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
        self.sizes.setdefault(shape[position], name)
        self.mapped.append(axis)
        return trace.input(name, dtype, shape[:position] + shape[position + 1 :], weak)


def _mapped(inner: Inner, mapping: _Mapping, out_axes: Any, random: str) -> Any:
    sizes = mapping.sizes
    if len(sizes) > 1:
        listed = ", ".join(f"{size} in {name}" for size, name in sizes.items())
        raise InvalidArgument(f"{users_line()}: vmap: expected one size of the axis, got {listed}")
    if not sizes:
        raise InvalidArgument(f"{users_line()}: vmap: expected one axis in in_axes, got None")
    size = next(iter(sizes))
    known = {"axis_size": size} if isinstance(size, int) else {"axis_name": size or "vmap"}
    inner.given = [x for x, axis in zip(inner.given, mapping.axes) if axis is not None]
    back = tree.spread(out_axes, inner.result, "vmap: out_axes")
    words = [str(axis) for axis in mapping.mapped] + ["none"] * len(inner.captured)
    model = inner.model.apply(
        "autodiff.vmap",
        in_axes=", ".join(words),
        out_axes=", ".join("none" if axis is None else str(axis) for axis in back),
        random=random,
        **known,
    )
    return tree.unflatten(inner.structure, iter(inner.splice(model)))
