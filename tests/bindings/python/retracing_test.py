# SPDX-License-Identifier: Apache-2.0
"""What calls a function of the user's outside of a trace sees what that function reads by then."""

import gc
import weakref

import numpy as np
import pytest
import tenon as tn

ONES = np.ones(2)


class Net:
    def __init__(self):
        self.w = 2.0

    def loss(self, x):
        return self.w * x


def by_rule(f):
    made = tn.custom_vjp(f)
    made.defvjp(lambda x: (f(x), None), lambda _, g: (g,))
    return made


@pytest.mark.parametrize(
    "call",
    [
        lambda f: tn.vjp(f, ONES)[0],
        lambda f: tn.vjp(f, ONES)[1](ONES)[0],
        lambda f: tn.jvp(f, (ONES,), (ONES,))[1],
        lambda f: tn.cond(np.array(True), f, f, ONES),
        lambda f: tn.fori_loop(0, 1, lambda i, x: f(x), ONES),
        lambda f: tn.scan(lambda c, x: (c, f(x)), 0, ONES)[1],
        lambda f: tn.while_loop(lambda x: x[0] < 2, f, ONES),
    ],
)
def test_a_changed_object_gives_other_results(call):
    net = Net()
    assert list(call(net.loss)) == [2, 2]
    net.w = 7.0
    assert list(call(net.loss)) == [7, 7]


@pytest.mark.parametrize("wrap", [tn.checkpoint, by_rule])
def test_a_wrapped_function_sees_what_changed(wrap):
    net = Net()
    call = wrap(net.loss)
    assert list(call(ONES)) == [2, 2]
    net.w = 7.0
    assert list(call(ONES)) == [7, 7]


def test_a_changed_array_gives_other_results():
    w = np.ones(2000)
    assert tn.jvp(lambda x: (w * x).sum(), (w,), (w,))[1] == 2000
    w = w.copy()
    w[-1] = 2
    assert tn.jvp(lambda x: (w * x).sum(), (np.ones(2000),), (np.ones(2000),))[1] == 2001


def test_another_gradient_counts_within_one_trace():
    f = tn.custom_vjp(lambda x: x * 1)

    def both(x):
        slopes = []
        for scale in (2.0, 3.0):
            f.defvjp(lambda x: (x * 1, None), lambda _, g, s=scale: (g * s,))
            slopes.append(tn.grad(f)(x))
        return slopes

    assert tn.jit(both)(1.0) == [2.0, 3.0]


def test_a_function_that_changes_in_each_step_goes_on():
    net = Net()
    call = by_rule(net.loss)
    for step in range(100):
        net.w = float(step)
        assert call(ONES)[0] == step


def test_the_pullback_is_that_of_the_function_as_it_was():
    net = Net()
    _, pull = tn.vjp(net.loss, ONES)
    net.w = 7.0
    assert list(pull(ONES)[0]) == [2, 2]


def test_functions_without_a_hash_have_derivatives():
    class Doubled:
        __hash__ = None

        def __call__(self, x):
            return x * 2

    assert tn.vjp(Doubled(), 3.0)[1](1.0) == (2.0,)
    assert tn.jvp(Doubled(), (3.0,), (1.0,)) == (6.0, 2.0)


def test_functions_are_let_go_of():
    def used():
        net = Net()
        tn.vjp(lambda x: net.w * x, ONES)
        tn.jvp(lambda x: net.w * x, (ONES,), (ONES,))
        tn.cond(np.array(True), net.loss, net.loss, ONES)
        return weakref.ref(net)

    known = used()
    gc.collect()
    assert known() is None
