# SPDX-License-Identifier: Apache-2.0
"""Control flow that depends on data: cond, while_loop, fori_loop, scan. They are ONNX's If, Loop
and Scan, so they have gradients and work under vmap; functions may use traced values of outside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import tree
from .arrays import flip, subtract
from .eager import anywhere_anew
from .errors import ArgumentError
from .trace import Trace, Value, as_operand, as_value, cast, current, users_line
from .transforms import Compiled
from .types import is_float

Function = Callable[..., Any]


def _plain(f: Function) -> Function:
    return f._inline if isinstance(f, Compiled) else f


def _values(of: Any) -> tuple[Any, list[Value]]:
    """The structure, and the leaves as values."""
    leaves, _, structure = tree.flatten(of)
    return structure, [as_value(leaf) for leaf in leaves]


def _is_number(x: Any) -> bool:
    return type(x) in (bool, int, float)


def _type(value: Value) -> str:
    return f"{value.dtype}[{', '.join(map(str, value.shape))}]"


def _values_like(structure: Any, of: Any, what: str) -> tuple[Any, list[Value]]:
    """As _values of what is to have this structure, in its order."""
    leaves = tree.leaves_like(structure, of, f"{users_line()}: {what}")
    return structure, [as_value(leaf) for leaf in leaves]


def _expect(wanted: list[Value], got: list[Value], what: str) -> None:
    types = [[_type(x) for x in values] for values in (wanted, got)]
    if types[0] != types[1]:
        raise ArgumentError(
            f"{users_line()}: {what}: expected {', '.join(types[0])} in the same structure, got "
            f"{', '.join(types[1])}; use tn.astype and tn.broadcast_to, or arrays of one type "
            "instead of numbers"
        )


#: The trace of a body, the states that it gives with their structure, and what else it gives.
_Body = tuple[Trace, tuple[Any, list[Value]], tuple[Any, list[Value]]]


def _steady(
    init: Any, body: Callable[[Any, list[Value]], _Body], what: str, beside: Sequence[Value] = ()
) -> tuple[Any, list[Value], _Body]:
    """The structure and the states that a loop begins with, and what body(structure, states) gives.
    A float of Python begins as float32. Beside float64 it begins as float64, without loss of a
    digit, unless the body gives it back in another type: then the body is traced again."""
    leaves, _, structure = tree.flatten(init)
    doubles: set[int] = set()

    def attempt() -> tuple[list[Value], _Body]:
        types = ["float64" if i in doubles else None for i in range(len(leaves))]
        states = [current().lift(as_value(x, dtype)) for x, dtype in zip(leaves, types)]
        return states, body(structure, states)

    floats = {i for i, leaf in enumerate(leaves) if type(leaf) is float}
    failed: ArgumentError | None = None
    try:
        states, made = attempt()
        met = [*beside, *states, *made[1][1], *made[2][1], *made[0].captured]
        is_steady = not floats or all(x.dtype != "float64" for x in met)
    except ArgumentError as error:  # a loop inside may want what float32 is not
        if not floats:
            raise
        failed, is_steady = error, False
    wanted = floats
    while not is_steady:
        doubles = wanted
        try:
            states, made = attempt()
        except ArgumentError as error:
            raise failed or error from None
        wanted = doubles & {i for i, x in enumerate(made[1][1]) if x.dtype == "float64"}
        is_steady = wanted == doubles
    _expect(states, made[1][1], f"{what}: state after a step")
    return structure, states, made


def _inputs(trace: Trace, name: str, values: Sequence[Value], structure: Any) -> Any:
    made = [trace.input(f"{name}{i}", x.dtype, x.shape) for i, x in enumerate(values)]
    return tree.unflatten(structure, iter(made))


def _truth(x: Any, what: str) -> Value:
    value = as_value(x)
    if value.shape != ():
        raise ArgumentError(f"{users_line()}: {what}: expected one truth value, got {value!r}")
    return cast(value, "bool")


def _node(op: str, inputs: Sequence[Value | None], bodies: dict[str, Trace], **more: Any) -> Any:
    """The node whose bodies take, behind their own inputs, what they use from outside."""
    captured = next(iter(bodies.values())).captured
    given = [*inputs, *(current().lift(x) for x in captured)]
    graphs = {name: body.model for name, body in bodies.items() if body.model}
    made = current().node(op, given, captures=len(captured), **graphs, **more)
    return made if isinstance(made, tuple) else (made,)


def _promoted(leaf: Any, beside: Any) -> Value:
    """A number of Python in the type of the value that the other branch gives."""
    wide = isinstance(beside, Value) and (type(leaf) is int or is_float(beside.dtype))
    return as_value(leaf, beside.dtype if wide and type(leaf) in (int, float) else None)


@anywhere_anew
def cond(condition: Any, true: Function, false: Function, /, *operands: Any) -> Any:
    """true(*operands) where condition, one truth value, is True, else false(*operands): one of them
    is computed. Both give the same structure, types and shapes; a number takes the type of what the
    other one gives. Under `tn.vmap` with a condition of each example both are computed."""
    chosen = _truth(condition, "cond: condition")
    operands = tuple(tree.map_leaves(as_operand, x) for x in operands)
    results, bodies, captured = [], [], []
    for f in (true, false):
        with Trace() as body:
            for value in captured:
                body.lift(value)
            result = _plain(f)(*operands)
            results.append(tree.map_leaves(lambda x: x if _is_number(x) else as_value(x), result))
        captured = body.captured
        bodies.append(body)
    for value in captured:  # what the second one uses beyond the first
        bodies[0].lift(value)
    what = "cond: result of the second function"
    leaves, _, structure = tree.flatten(results[0])
    others = tree.leaves_like(structure, results[1], f"{users_line()}: {what}")
    if not leaves:
        return results[0]
    made = []
    for body, mine, beside in zip(bodies, (leaves, others), (others, leaves)):
        with body:
            made.append([_promoted(x, y) for x, y in zip(mine, beside)])
    _expect(*made, what)
    for body, values in zip(bodies, made):
        body.finish(values)
    named = {"then_branch": bodies[0], "else_branch": bodies[1]}
    return tree.unflatten(structure, iter(_node("If", [chosen], named, outputs=len(leaves))))


@anywhere_anew
def while_loop(condition: Function, body: Function, init: Any, /) -> Any:
    """state = init, then state = body(state) as long as condition(state); the last state, a tree
    whose types and shapes stay. Its gradient keeps the state before each step."""

    def step(structure: Any, states: list[Value]) -> _Body:
        with Trace() as inner:
            inner.input("iteration", "int64", ())
            inner.input("condition", "bool", ())
            result = _plain(body)(_inputs(inner, "state", states, structure))
            new = _values_like(structure, result, "while_loop: state after a step")
            again = _plain(condition)(tree.unflatten(structure, iter(new[1])))
            return inner, new, ((), [_truth(again, "while_loop: condition")])

    structure, states, (inner, (_, new), (_, going)) = _steady(init, step, "while_loop")
    first = _truth(_plain(condition)(tree.unflatten(structure, iter(states))), "while_loop")
    inner.finish([*going, *new])
    made = _node("Loop", [None, first, *states], {"body": inner}, outputs=len(states))
    return tree.unflatten(structure, iter(made))


def _loop(steps: Value, step: Function, init: Any, who: str) -> tuple[Any, Any]:
    """step(i, state) gives the state and what is stacked; the last state and the stacks."""
    going = []

    def body(structure: Any, states: list[Value]) -> _Body:
        with Trace() as inner:
            i = inner.input("iteration", "int64", ())
            inner.input("condition", "bool", ())
            state, more = step(i, _inputs(inner, "state", states, structure))
            going[:] = [as_value(True)]
            new = _values_like(structure, state, f"{who}: state after a step")
            return inner, new, _values(more)

    structure, states, (inner, (_, new), (stacks, more)) = _steady(init, body, who)
    if not new and not more:
        raise ArgumentError(f"{users_line()}: {who}: expected a state or results, got neither")
    inner.finish([*going, *new, *more])
    outputs = len(new) + len(more)
    made = _node("Loop", [steps, None, *states], {"body": inner}, outputs=outputs)
    last = tree.unflatten(structure, iter(made))
    return last, tree.unflatten(stacks, iter(made[len(states) :]))


def _whole(x: Any, what: str) -> Value:
    value = as_value(x)
    if is_float(value.dtype):
        raise ArgumentError(f"{users_line()}: {what}: expected an integer, got {x!r}")
    return cast(value, "int64")


@anywhere_anew
def fori_loop(lower: Any, upper: Any, body: Function, init: Any, /) -> Any:
    """state = init, then state = body(i, state) for i from lower to upper, upper excluded; the last
    state. Both limits may be traced integers."""
    first = _whole(lower, "fori_loop: lower")
    steps = subtract(_whole(upper, "fori_loop: upper"), first)
    plain = isinstance(lower, int) and lower == 0

    def step(i: Value, state: Any) -> tuple[Any, Any]:
        return _plain(body)(i if plain else i + current().lift(first), state), ()

    return _loop(steps, step, init, "fori_loop")[0]


@anywhere_anew
def scan(
    f: Function, init: Any, xs: Any = None, /, length: int | None = None, reverse: bool = False
) -> tuple[Any, Any]:
    """state, y = f(state, x) for each slice x of the first axis of xs, a tree; the last state, and
    all y stacked. xs None: length steps with x None. reverse: from the last slice to the first."""
    slices, given = _values(xs)
    if length is not None and (not hasattr(length, "__index__") or length.__index__() < 0):
        raise ArgumentError(
            f"{users_line()}: scan: length: expected an integer from 0, got {length!r}"
        )
    if not given:
        if length is None:
            raise ArgumentError(f"{users_line()}: scan: expected xs or length, got neither")
        steps = as_value(length.__index__())
        last, stacks = _loop(steps, lambda _, state: _plain(f)(state, None), init, "scan")
        return last, tree.map_leaves(lambda y: flip(y, axis=0), stacks) if reverse else stacks
    sizes = {x.shape[:1] for x in given} | ({(length,)} if length is not None else set())
    if len(sizes) > 1 or () in sizes:
        types = ", ".join(_type(x) for x in given)
        raise ArgumentError(
            f"{users_line()}: scan: expected one size of the first axis, got {types}"
        )

    def body(structure: Any, states: list[Value]) -> _Body:
        with Trace() as inner:
            state = _inputs(inner, "state", states, structure)
            parts = [inner.input(f"x{i}", x.dtype, x.shape[1:]) for i, x in enumerate(given)]
            result = _plain(f)(state, tree.unflatten(slices, iter(parts)))
            if not isinstance(result, tuple) or len(result) != 2:
                raise ArgumentError(f"{users_line()}: scan: expected f to give (state, y)")
            new = _values_like(structure, result[0], "scan: state after a step")
            return inner, new, _values(result[1])

    structure, states, (inner, (_, new), (stacks, more)) = _steady(init, body, "scan", given)
    inner.finish([*new, *more])
    made = _node(
        "Scan",
        [*states, *given],
        {"body": inner},
        outputs=len(new) + len(more),
        num_scan_inputs=len(given),
        scan_input_directions=[int(reverse)] * len(given),
        scan_output_directions=[int(reverse)] * len(more),
    )
    last = tree.unflatten(structure, iter(made))
    return last, tree.unflatten(stacks, iter(made[len(states) :]))
