# SPDX-License-Identifier: Apache-2.0
"""What a traced value does in an expression: operators, indexing, NumPy's methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from . import arrays as a
from . import numpy_calls
from .errors import TracedValueError
from .indexing import At, take_items
from .trace import Trace, Value, users_line


class Traced(Value):
    """A value inside a function under `tn.jit`, `tn.grad`, `tn.vmap`: it has a type and a shape,
    but no numbers yet. Operators and functions on it add nodes to the graph.

    dtype: the element type by name ("float32"). shape: sizes, and names of symbolic ones.
    """

    __slots__ = ()
    __hash__ = object.__hash__

    if TYPE_CHECKING:  # what `_operators` sets: the functions of these names, with self before all
        sum: Callable[..., Traced]
        mean: Callable[..., Traced]
        prod: Callable[..., Traced]
        max: Callable[..., Traced]
        min: Callable[..., Traced]
        std: Callable[..., Traced]
        var: Callable[..., Traced]
        any: Callable[..., Traced]
        all: Callable[..., Traced]
        argmax: Callable[..., Traced]
        argmin: Callable[..., Traced]

    # Values that would be needed now.
    def _unknown(self, used: str, remedy: str) -> NoReturn:
        raise TracedValueError(
            f"{users_line()}: {used}: expected a value that is known while the function is traced, "
            f"got {self!r}; {remedy}"
        )

    def __bool__(self) -> NoReturn:
        self._unknown(
            "a truth test (if, while, and, or, not)",
            "use tn.where(condition, a, b), tn.logical_and/or/not, or put the argument in "
            "static_argnums",
        )

    def __float__(self) -> NoReturn:
        self._unknown("float()", "return the value and convert the result")

    def __int__(self) -> NoReturn:
        self._unknown("int()", "use .astype('int64'), or put the argument in static_argnums")

    def __index__(self) -> NoReturn:
        remedy = "use tn.take, or put the argument in static_argnums"
        self._unknown("use as an index of Python", remedy)

    def item(self) -> NoReturn:
        """Not under trace: return the value instead."""
        self._unknown("item()", "return the value and read the result")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        # array + value, np.exp(value)
        function = numpy_calls.of_elements(ufunc, method, named)
        if function is None:
            called = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
            remedy = numpy_calls.instead_of_elements(ufunc.__name__, method, named)
            self._unknown(f"np.{called}", remedy)
        return function(*inputs)

    def __array_function__(self, function: Any, _: Any, inputs: tuple, named: Any) -> Any:
        # np.sum(value): the function of the same name, where it takes the same arguments
        part = function.__module__.removeprefix("numpy").lstrip(".")
        called = ".".join(filter(None, ("np", part, function.__name__)))
        own = numpy_calls.of_arrays(function.__name__, part)
        if own is None:
            self._unknown(called, numpy_calls.instead(function.__name__))
        try:
            first, rest = numpy_calls.arguments(function, inputs, named)
            return own(*first, **rest)
        except (TypeError, ValueError) as failed:
            name = numpy_calls.own_name(function.__name__)
            became = ".".join(filter(None, ("tn", part, name)))
            raise TracedValueError(f"{failed}; {called} became {became}, see its help") from None

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        self._unknown(
            "a function of NumPy",
            "use the one of tenon, as tn.exp for np.exp, and the value itself for np.asarray of it",
        )

    def __setitem__(self, *_: Any) -> NoReturn:
        raise TracedValueError(
            f"{users_line()}: traced values do not change; use x.at[i].set(y), tn.where or "
            "tn.concat for a new one"
        )

    # Shape.
    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return len(self.shape)

    @property
    def size(self) -> int | None:
        """How many elements; None when a size is symbolic."""
        count = 1
        for dim in self.shape:
            if not isinstance(dim, int):
                return None
            count *= dim
        return count

    def __len__(self) -> int:
        if not self.shape or not isinstance(self.shape[0], int):
            raise TypeError(f"{users_line()}: len() of {self!r}: its first size is not known")
        return self.shape[0]

    def __iter__(self):
        return iter([self[i] for i in range(len(self))])

    def __getitem__(self, key: Any) -> Traced:
        return take_items(self, key)

    @property
    def at(self) -> At:
        """`x.at[key].set(y)` is x with y there; also add, multiply, min, max, get."""
        return At(self)

    @property
    def T(self) -> Traced:
        """All axes in reverse order."""
        return a.transpose(self)

    @property
    def mT(self) -> Traced:
        """The last two axes exchanged."""
        return a.matrix_transpose(self)

    def transpose(self, *axes: Any) -> Traced:
        """As NumPy's: without axes, all in reverse order."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return a.permute_dims(self, order) if order else self.T

    def reshape(self, *shape: Any) -> Traced:
        """One size may be -1: it is what is left."""
        one = len(shape) == 1 and not isinstance(shape[0], (int, str))
        return a.reshape(self, shape[0] if one else shape)

    def ravel(self) -> Traced:
        """All elements in one axis."""
        return a.reshape(self, (-1,))

    flatten = ravel

    def astype(self, dtype: Any) -> Traced:
        """As elements of another type."""
        return a.astype(self, dtype)

    def squeeze(self, axis: Any = None) -> Traced:
        """Without the axes of size 1, or without these."""
        return a.squeeze(self, axis)

    def clip(self, min: Any = None, max: Any = None) -> Traced:
        """Not below min and not above max."""
        return a.clip(self, min, max)

    def __repr__(self) -> str:
        return f"<traced {self.dtype}[{', '.join(map(str, self.shape))}]>"


def _operators() -> None:
    both = {
        "add": a.add,
        "sub": a.subtract,
        "mul": a.multiply,
        "truediv": a.divide,
        "floordiv": a.floor_divide,
        "mod": a.remainder,
        "pow": a.pow,
        "matmul": a.matmul,
        "lshift": a.bitwise_left_shift,
        "rshift": a.bitwise_right_shift,
        "and": a.bitwise_and,
        "or": a.bitwise_or,
        "xor": a.bitwise_xor,
    }

    for name, function in both.items():
        setattr(Traced, f"__{name}__", lambda self, other, call=function: call(self, other))
        if name in ("and", "or", "xor"):
            setattr(Traced, f"__r{name}__", lambda self, other, call=function: call(self, other))
        else:
            setattr(Traced, f"__r{name}__", lambda self, other, call=function: call(other, self))
    compare = {
        "eq": a.equal,
        "ne": a.not_equal,
        "lt": a.less,
        "le": a.less_equal,
        "gt": a.greater,
        "ge": a.greater_equal,
    }
    for name, function in compare.items():
        setattr(Traced, f"__{name}__", lambda self, other, call=function: call(self, other))
    Traced.__neg__ = lambda self: a.negative(self)
    Traced.__pos__ = lambda self: self
    Traced.__abs__ = lambda self: a.abs(self)
    Traced.__invert__ = lambda self: a.bitwise_invert(self)
    for name in "sum mean prod max min std var any all argmax argmin".split():
        call = getattr(a, name)

        def method(self: Any, axis: Any = None, *, call: Any = call, **named: Any) -> Any:
            return call(self, axis=axis, **named)

        method.__name__, method.__doc__ = name, call.__doc__
        setattr(Traced, name, method)


_operators()
Trace.value_class = Traced
