# SPDX-License-Identifier: Apache-2.0
"""cond, while_loop, fori_loop and scan: values, gradients, vmap, against loops of Python and closed
forms."""

import numpy as np
import onnx
import pytest
import tenon as tn
from onnx import TensorProto, helper

X = np.float32([0.5, -1.25, 2.0])
ROWS = np.float32([[1, 2, 3], [-1, 0, 2], [0.5, 0.5, 0.5], [2, -2, 1]])


def choose(x):
    return tn.cond(x.sum() > 0, lambda v: (v * 2, v.sum()), lambda v: (-v, v.max()), x)


def test_cond_computes_the_one_that_is_chosen():
    for x in (X, -X):
        want = (x * 2, x.sum()) if x.sum() > 0 else (-x, x.max())
        for got in (choose(x), tn.jit(choose)(x)):
            np.testing.assert_allclose(got[0], want[0], rtol=1e-6)
            np.testing.assert_allclose(got[1], want[1], rtol=1e-6)


def test_cond_has_the_gradient_of_the_one_that_is_chosen():
    slope = tn.grad(lambda x: tn.cond(x.sum() > 0, lambda: (x * x).sum(), lambda: x.sum() * 3))
    np.testing.assert_allclose(slope(X), 2 * X)
    np.testing.assert_allclose(slope(-X), 3 + 0 * X)


def test_cond_under_vmap_chooses_for_each_example():
    f = lambda row: tn.cond(row[0] > 0, lambda r: r * r, lambda r: r - 1, row)  # noqa: E731
    want = np.where(ROWS[:, :1] > 0, ROWS**2, ROWS - 1)
    np.testing.assert_allclose(tn.vmap(f)(ROWS), want)
    slopes = tn.vmap(tn.grad(lambda row: f(row).sum()))(ROWS)
    np.testing.assert_allclose(slopes, np.where(ROWS[:, :1] > 0, 2 * ROWS, 1))


def test_branches_capture_different_values():
    f = tn.jit(lambda p, a, b, c: tn.cond(p, lambda: a + b, lambda: b * c))
    assert float(f(True, 2.0, 3.0, 5.0)) == 5 and float(f(False, 2.0, 3.0, 5.0)) == 15


def test_branches_of_different_types_are_refused():
    with pytest.raises(TypeError, match=r"cond: .*expected float32\[3\].*got float32\[\].*astype"):
        tn.jit(lambda x: tn.cond(x[0] > 0, lambda: x, lambda: x.sum()))(X)
    with pytest.raises(TypeError, match="one truth value"):
        tn.jit(lambda x: tn.cond(x > 0, lambda: x, lambda: x))(X)


def root(x):  # Newton's method until it stands still; its gradient is that of sqrt
    def better(state):
        _, y = state
        return y, (y + x / y) * 0.5

    return tn.while_loop(lambda s: tn.abs(s[0] - s[1]) > 1e-6, better, (x + 2, x + 1))[1]


def test_while_loop_goes_on_as_long_as_it_should():
    for x in (0.25, 2.0, 9.0):
        assert np.isclose(tn.jit(root)(np.float32(x)), np.sqrt(x), rtol=1e-6)
        assert np.isclose(root(np.float32(x)), np.sqrt(x), rtol=1e-6)
        assert np.isclose(tn.grad(root)(np.float32(x)), 0.5 / np.sqrt(x), rtol=1e-4)


def test_while_loop_under_vmap_ends_for_each_example():
    x = np.float32([0.25, 2.0, 9.0, 100.0])
    np.testing.assert_allclose(tn.vmap(root)(x), np.sqrt(x), rtol=1e-6)
    summed = tn.grad(lambda x: tn.vmap(root)(x).sum())
    np.testing.assert_allclose(summed(x), 0.5 / np.sqrt(x), rtol=1e-4)
    np.testing.assert_allclose(tn.vmap(tn.grad(root))(x), 0.5 / np.sqrt(x), rtol=1e-4)


def grown(x, most):
    """x, x**2, x**4, ... until `most` is passed: from no round to many, by example."""
    return tn.while_loop(lambda s: s < most, lambda s: s * s, x)


def test_gradients_of_uneven_loops_under_vmap_are_those_of_each_example():
    x = np.float32([1.5, 2.0, 200.0, 1.05, 3.0])
    most = np.float32([100.0, 10.0, 100.0, 4.0, 3.0])
    rounds = [0] * 5
    for i in range(5):
        s = x[i]
        while s < most[i]:
            s, rounds[i] = s * s, rounds[i] + 1
    assert rounds == [4, 2, 0, 5, 0]
    power = 2.0 ** np.array(rounds)
    both = tn.vmap(tn.value_and_grad(grown))(x, most)
    np.testing.assert_allclose(both[0], x**power, rtol=1e-5)
    np.testing.assert_allclose(both[1], power * x ** (power - 1), rtol=1e-4)
    # A count that differs, and a step whose gradient reads no state, or what lies outside.
    n = np.int64([3, 0, 5, 1])
    w = np.float32([0.5, 1.5, 2.0, 3.0])

    def scaled(w, n):
        return tn.fori_loop(0, n, lambda i, s: s * 2, w)

    def counted(w, n):
        return tn.fori_loop(0, n, lambda i, s: s + w * tn.astype(i, "float32"), w * 0)

    def products(w, n):
        return tn.fori_loop(0, n, lambda i, s: s * w, tn.ones_like(w))

    np.testing.assert_allclose(tn.vmap(tn.grad(scaled))(w, n), 2.0**n, rtol=1e-6)
    np.testing.assert_allclose(tn.vmap(tn.grad(counted))(w, n), n * (n - 1) / 2, rtol=1e-6)
    np.testing.assert_allclose(tn.vmap(tn.grad(products))(w, n), n * w ** (n - 1.0), rtol=1e-5)
    slopes = tn.vmap(lambda w, n: tn.jvp(lambda v: products(v, n), (w,), (tn.ones_like(w),))[1])
    np.testing.assert_allclose(slopes(w, n), n * w ** (n - 1.0), rtol=1e-5)
    # Of examples with several numbers each.
    rows = np.float32([[1.5, 1.2], [2.0, 1.1], [3.0, 7.0]])
    total = tn.grad(lambda r: tn.while_loop(lambda s: tn.sum(s) < 9, lambda s: s * s, r).sum())
    np.testing.assert_allclose(tn.vmap(total)(rows), np.stack([total(r) for r in rows]), rtol=1e-5)
    # What reads the states of all steps at once says what to do instead.
    with pytest.raises(tn.Unimplemented, match="gradient of the sum over the examples"):
        tn.vmap(tn.grad(tn.grad(products)))(w, n)
    with pytest.raises(tn.Unimplemented, match="gradient of the sum over the examples"):
        tn.vmap(tn.vmap(tn.grad(grown)))(np.stack([x, x]), np.stack([most, most]))
    nested = tn.grad(lambda x: tn.vmap(tn.vmap(grown))(x, np.stack([most, most])).sum())
    np.testing.assert_allclose(nested(np.stack([x, x]))[1], both[1], rtol=1e-4)


def info(name, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, [])


def test_what_uneven_loops_stack_is_refused(tmp_path):
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["going"], ["goes"]),
            helper.make_node("Add", ["s", "s"], ["t"]),
            helper.make_node("Identity", ["t"], ["seen"]),
        ],
        "body",
        [info("i", TensorProto.INT64), info("going", TensorProto.BOOL), info("s")],
        [info("goes", TensorProto.BOOL), info("t"), info("seen")],
    )
    nodes = [
        helper.make_node("Loop", ["n", "", "x"], ["last", "all"], body=body),
        helper.make_node("Exp", ["all"], ["waves"]),
        helper.make_node("ReduceSum", ["waves"], ["y"], keepdims=0),
    ]
    graph = helper.make_graph(
        nodes, "g", [info("n", TensorProto.INT64), info("x")], [info("y"), info("last")]
    )
    path = tmp_path / "loop.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), path)
    model = tn.load(str(path))
    x = np.float32([0.1, 0.2])
    want = np.exp(x[:, None] * 2.0 ** np.arange(1, 4)).sum(1)
    sums = tn.vmap(model, in_axes=(None, 0))(np.int64(3), x)[0]
    np.testing.assert_allclose(sums, want, rtol=1e-5)
    with pytest.raises(tn.Unimplemented, match="or loop a fixed number of times"):
        tn.vmap(model)(np.int64([3, 5]), x)


def test_while_loop_may_do_nothing():
    assert float(tn.jit(lambda x: tn.while_loop(lambda s: s < 0, lambda s: s * 2, x))(3.0)) == 3


def power(x, n):
    return tn.fori_loop(0, n, lambda i, s: s * x, tn.ones_like(x))


def test_fori_loop_counts_traced_and_plain_limits():
    np.testing.assert_allclose(tn.jit(lambda x: power(x, 5))(X), X**5, rtol=1e-5)
    np.testing.assert_allclose(tn.jit(power)(X, np.int64(4)), X**4, rtol=1e-5)
    total = tn.jit(lambda a, b: tn.fori_loop(a, b, lambda i, s: s + i, np.int64(0)))
    assert int(total(3, 10)) == sum(range(3, 10)) and int(total(5, 2)) == 0


def test_fori_loop_has_gradients_and_works_under_vmap():
    np.testing.assert_allclose(tn.grad(lambda x: power(x, 5).sum())(X), 5 * X**4, rtol=1e-5)
    np.testing.assert_allclose(tn.vmap(lambda r: power(r, 3))(ROWS), ROWS**3, rtol=1e-5)
    second = tn.grad(lambda x: tn.grad(lambda v: power(v, 4).sum())(x).sum())
    np.testing.assert_allclose(second(X), 12 * X**2, rtol=1e-5)
    slope = tn.jvp(lambda x: power(x, 3), (X,), (np.ones_like(X),))[1]
    np.testing.assert_allclose(slope, 3 * X**2, rtol=1e-5)


def smooth(xs, decay):
    def step(state, x):
        new = state * decay + x
        return new, {"y": new * 2, "last": state}

    return tn.scan(step, tn.zeros_like(xs[0]), xs)


def numpys_smooth(xs, decay):
    state, ys, lasts = 0 * xs[0], [], []
    for x in xs:
        lasts.append(state)
        state = state * decay + x
        ys.append(2 * state)
    return state, np.stack(ys), np.stack(lasts)


def test_scan_gives_the_last_state_and_all_results():
    want = numpys_smooth(ROWS, 0.5)
    for last, more in (smooth(ROWS, 0.5), tn.jit(smooth)(ROWS, 0.5)):
        np.testing.assert_allclose(last, want[0], rtol=1e-6)
        np.testing.assert_allclose(more["y"], want[1], rtol=1e-6)
        np.testing.assert_allclose(more["last"], want[2], rtol=1e-6)


def test_scan_in_reverse():
    last, ys = tn.jit(lambda xs: tn.scan(lambda s, x: (s + x, s + x), 0 * xs[0], xs, reverse=True))(
        ROWS
    )
    np.testing.assert_allclose(ys, np.cumsum(ROWS[::-1], 0)[::-1])
    np.testing.assert_allclose(last, ROWS.sum(0))


def test_scan_without_slices_takes_a_length():
    last, ys = tn.scan(lambda s, _: (s * 2, s), np.float32(1), length=5)
    assert float(last) == 32 and ys.tolist() == [1, 2, 4, 8, 16]


def test_scan_has_gradients():
    def loss(xs, decay):
        last, more = smooth(xs, decay)
        return (last**2).sum() + (more["y"] ** 3).sum()

    def numpys(xs, decay):
        last, ys, _ = numpys_smooth(xs.astype("float64"), float(decay))
        return (last**2).sum() + (ys**3).sum()

    slopes = tn.grad(loss, argnums=(0, 1))(ROWS, np.float32(0.5))
    step = 1e-5
    for at in np.ndindex(*ROWS.shape):
        moved = np.zeros(ROWS.shape)
        moved[at] = step
        near = (numpys(ROWS + moved, 0.5) - numpys(ROWS - moved, 0.5)) / (2 * step)
        assert np.isclose(slopes[0][at], near, rtol=1e-4, atol=1e-3)
    near = (numpys(ROWS, 0.5 + step) - numpys(ROWS, 0.5 - step)) / (2 * step)
    assert np.isclose(slopes[1], near, rtol=1e-4)


def test_scan_under_vmap():
    many = np.stack([ROWS, ROWS * 2, -ROWS])
    got = tn.vmap(lambda xs: smooth(xs, 0.5)[1]["y"])(many)
    np.testing.assert_allclose(got, [numpys_smooth(xs, 0.5)[1] for xs in many], rtol=1e-6)
    slopes = tn.vmap(tn.grad(lambda xs: (smooth(xs, 0.5)[0] ** 2).sum()))(many)
    alone = [tn.grad(lambda xs: (smooth(xs, 0.5)[0] ** 2).sum())(xs) for xs in many]
    np.testing.assert_allclose(slopes, alone, rtol=1e-5)


def test_loops_in_loops_and_in_branches():
    def f(x):
        inner = lambda i, s: tn.cond(s[0] > 4, lambda: s + x, lambda: s * 2)  # noqa: E731
        return tn.fori_loop(0, 3, lambda i, s: tn.fori_loop(0, 2, inner, s), x)

    want = X + 1
    for _ in range(6):
        want = want + X + 1 if want[0] > 4 else want * 2
    np.testing.assert_allclose(tn.jit(f)(X + 1), want, rtol=1e-6)


def test_a_state_that_changes_its_type_is_refused():
    with pytest.raises(
        TypeError, match=r"fori_loop: state.*expected int64\[\] .*, got float32\[\]"
    ):
        tn.jit(lambda x: tn.fori_loop(0, 3, lambda i, s: s + x, 0))(1.5)
    with pytest.raises(TypeError, match="expected xs or length"):
        tn.scan(lambda s, x: (s, s), 1.0)


def test_the_hessian_of_a_loop_whose_end_depends_on_data():
    def step(xp, x):
        return xp.tanh(x) + 0.3

    def plain(x):
        while x.sum() < 2:
            x = step(np, x)
        return x

    f = lambda x: tn.sum(tn.while_loop(lambda x: x.sum() < 2, lambda x: step(tn, x), x) ** 2)  # noqa: E731
    x, h = np.array([0.5, 0.25]), 1e-4
    unit = np.eye(2) * h
    at = lambda a: (plain(a) ** 2).sum()  # noqa: E731
    want = [
        [
            (at(x + i + j) - at(x + i - j) - at(x - i + j) + at(x - i - j)) / (4 * h * h)
            for j in unit
        ]
        for i in unit
    ]
    np.testing.assert_allclose(tn.hessian(f)(x), want, rtol=1e-4, atol=1e-4)
    done = np.array([3.0, 4.0, 5.0])  # no step at all
    np.testing.assert_allclose(tn.hessian(f)(done), 2 * np.eye(3))


def test_a_loop_that_reads_what_it_does_not_need_is_batched_within_a_branch():
    def looped(x):
        unread = tn.sin(x)

        def step(state):
            i, y = state
            tn.subtract(y, unread)
            return i + 1, y * 0.5

        start = tn.asarray(0, dtype="int64"), x
        loop = lambda x: tn.while_loop(lambda s: s[0] < 2, step, start)[1]  # noqa: E731
        return tn.sum(tn.cond(tn.sum(x) > 0, lambda x: x, loop, x) ** 3)

    x = np.float32([-0.5, -2])
    np.testing.assert_allclose(tn.hessian(looped)(x), np.diag(6 * x / 64), rtol=1e-5)


# Numbers of examples that do not take a branch may be none that it can take.
def entry_or_zero(row, i):
    return tn.cond((i >= 0) & (i < 3), lambda: tn.take(row, tn.reshape(i, (1,)))[0], lambda: 0.0)


@pytest.mark.parametrize("backend", ["reference", "onednn"])
@pytest.mark.parametrize("indices", [[0, 7, 2, -9], [9, 8, 7, -4]])
def test_a_branch_sees_only_examples_that_take_it(backend, indices):
    at = np.int64(indices)
    want = [row[i] if 0 <= i < 3 else 0 for row, i in zip(ROWS, at)]
    np.testing.assert_allclose(tn.vmap(entry_or_zero, backend=backend)(ROWS, at), want)
    slopes = tn.vmap(tn.grad(entry_or_zero), backend=backend)(ROWS, at)
    np.testing.assert_allclose(slopes, [np.arange(3) == i for i in at])
    together = tn.grad(lambda x: tn.sum(tn.vmap(entry_or_zero)(x, at)), backend=backend)
    np.testing.assert_allclose(together(ROWS), slopes)


@pytest.mark.parametrize("scale", [1.0, 0.0])
def test_a_branch_does_not_solve_what_has_no_solution(scale):
    def solved(a):  # the first and the last have no inverse
        return tn.cond(a[0, 0] > 0.5, lambda: tn.linalg.solve(a, tn.ones((2,))).sum(), lambda: 7.0)

    matrices = np.float32(
        [np.zeros((2, 2)), [[1, 0], [0, 2]], [[2, 1], [1, 2]], np.ones((2, 2)) / 9]
    )
    matrices *= np.float32(scale)
    want = [1.5, 2 / 3] if scale else [7, 7]
    np.testing.assert_allclose(tn.vmap(solved)(matrices), [7, *want, 7], rtol=1e-6)
    slopes = tn.vmap(tn.grad(solved))(matrices)
    assert np.isfinite(slopes).all() and (np.asarray(slopes)[1].any() == bool(scale))


def test_a_scan_whose_states_change_places_reads_those_of_the_step_before():
    def step(state, x):
        a, b = state
        return (b, a + b * x), (a, b)

    f = tn.jit(lambda a, b, xs: tn.scan(step, (a, b), xs))
    a, b = np.float32([1, 2]), np.float32([1, 0])
    xs = np.float32([1, 2, -1, 0.5, 3])
    (last_a, last_b), (seen_a, seen_b) = f(a, b, xs)
    want = []
    for x in xs:
        want.append((a, b))
        a, b = b, a + b * x
    np.testing.assert_array_equal(last_a, a)
    np.testing.assert_array_equal(last_b, b)
    np.testing.assert_array_equal(seen_a, np.stack([w[0] for w in want]))
    np.testing.assert_array_equal(seen_b, np.stack([w[1] for w in want]))


@pytest.mark.parametrize("rank", [1, 2])
def test_weights_of_loops_of_uneven_length_have_gradients_by_example(rank):
    """A weight that each step multiplies with: its gradient is no product behind the loop, whose
    steps differ by example."""
    rng = np.random.default_rng(3)
    weight = 0.5 * rng.standard_normal((3, 3)).astype("f")
    x = rng.standard_normal((4, 3) if rank == 1 else (4, 2, 3)).astype("f")
    counts = np.array([1, 3, 2, 4])

    def looped(w, x, n):
        _, last = tn.while_loop(
            lambda s: s[0] < n, lambda s: (s[0] + 1, tn.tanh(s[1] @ w)), (np.int64(0), x)
        )
        return (last * last).sum()

    def unrolled(n):
        def f(w, x):
            for _ in range(n):
                x = tn.tanh(x @ w)
            return (x * x).sum()

        return f

    got = tn.vmap(tn.grad(looped), in_axes=(None, 0, 0))(weight, x, counts)
    for each, of_one, n in zip(got, x, counts):
        np.testing.assert_allclose(each, tn.grad(unrolled(n))(weight, of_one), rtol=1e-5, atol=1e-5)
