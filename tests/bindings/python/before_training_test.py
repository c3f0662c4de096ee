# SPDX-License-Identifier: Apache-2.0
"""Pruning before and during training, each algorithm beside itself in NumPy."""

import numpy as np
import pytest
import tenon

WIDE, HIDDEN, CLASSES = 12, 10, 4


def weights(seed: int = 0, widths=(WIDE, HIDDEN, CLASSES)) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    pairs = zip(widths, widths[1:])
    return [(rng.standard_normal((a, b)) / np.sqrt(a)).astype("f") for a, b in pairs]


def network(held: list[np.ndarray], ends_in_softmax: bool = False) -> tenon.Model:
    """x -> fc0 -> Relu -> fc1 -> ... -> y, without biases."""
    graph = tenon.Graph()
    value = graph.add_input("x", "float32", ["N", held[0].shape[0]])
    for i, array in enumerate(held):
        value = graph.add_node("MatMul", [value, graph.add_constant(array, f"w{i}")], name=f"fc{i}")
        if i + 1 < len(held):
            value = graph.add_node("Relu", [value], name=f"relu{i}")
    if ends_in_softmax:
        value = graph.add_node("Softmax", [value], name="softmax", axis=1)
    graph.add_output("y", value)
    return graph.build()


def kept(model: tenon.Model, n: int) -> list[np.ndarray]:
    return [np.asarray(model.constants()[f"w{i}"]) != 0 for i in range(n)]


def best(scores: list[np.ndarray], stay: int) -> list[np.ndarray]:
    """Masks of the so many best of all."""
    flat = np.concatenate([one.ravel() for one in scores])
    chosen = np.zeros(flat.size, bool)
    chosen[np.argsort(flat, kind="stable")[flat.size - stay :]] = True
    cuts = np.cumsum([one.size for one in scores])[:-1]
    return [mask.reshape(one.shape) for mask, one in zip(np.split(chosen, cuts), scores)]


def flow(held: list[np.ndarray]) -> list[np.ndarray]:
    """|w| times the derivative of the sum of what absolute weights make of ones."""
    sizes = [np.abs(one.astype(np.float64)) for one in held]
    forward, backward = [np.ones(sizes[0].shape[0])], [np.ones(sizes[-1].shape[1])]
    for one in sizes[:-1]:
        forward.append(forward[-1] @ one)
    for one in sizes[:0:-1]:
        backward.insert(0, one @ backward[0])
    return [a[:, None] * w * b[None, :] for a, w, b in zip(forward, sizes, backward)]


def test_flow_is_the_same_through_every_layer_and_is_what_is_pruned_by():
    held = weights()
    scores = flow(held)
    np.testing.assert_allclose(scores[0].sum(), scores[1].sum())
    for softmax in (False, True):
        model = network(held, softmax)
        pruned = model.apply(
            "pruner.unstructured", sparsity=0.6, scope="global", importance="synflow"
        )
        total = sum(one.size for one in held)
        wanted = best(scores, total - int(0.6 * total))
        for found, mask in zip(kept(pruned, 2), wanted):
            np.testing.assert_array_equal(found, mask)


def test_rounds_keep_flow_where_one_shot_empties_a_layer():
    held = weights(1, (64, 128, 128, 8))
    options = dict(sparsity=0.99, scope="global", importance="synflow")
    with pytest.raises(
        tenon.InvalidArgument, match="option sparsity: .* would empty fc0: all 8192"
    ):
        network(held).apply("pruner.unstructured", **options)

    pruned = network(held).apply("pruner.unstructured", rounds=30, **options)

    total, left = sum(one.size for one in held), [one.copy() for one in held]
    for number in range(1, 31):
        stay = total - int(total * (1 - 0.01 ** (number / 30)) + 1e-9)
        left = [w * mask for w, mask in zip(left, best(flow(left), stay))]
    found = kept(pruned, 3)
    assert sum(int(one.sum()) for one in found) == sum(int((one != 0).sum()) for one in left)
    assert min(int(one.sum()) for one in found) > 20
    agree = np.mean([np.mean(one == (w != 0)) for one, w in zip(found, left)])
    assert agree > 0.999  # scores in float32 may tie


def data_of(folder, x: np.ndarray, label: np.ndarray) -> str:
    np.savez(folder / "data.npz", x=x, label=label)
    return str(folder / "data.npz")


def test_snip_is_the_size_of_gradient_times_weight(tmp_path):
    held, rng = weights(2), np.random.default_rng(3)
    x = rng.standard_normal((16, WIDE)).astype("f")
    label = rng.integers(0, CLASSES, 16)
    pruned = network(held).apply(
        "pruner.unstructured", sparsity=0.5, scope="global", importance="snip",
        data=data_of(tmp_path, x, label), batch=16, samples=16,
    )  # fmt: skip
    hidden = x @ held[0]
    logits = np.maximum(hidden, 0) @ held[1]
    share = np.exp(logits - logits.max(1, keepdims=True))
    slope = share / share.sum(1, keepdims=True)
    slope[np.arange(16), label] -= 1
    slope /= 16
    second = np.maximum(hidden, 0).T @ slope
    first = x.T @ ((slope @ held[1].T) * (hidden > 0))
    total = sum(one.size for one in held)
    scores = [np.abs(g * w) for g, w in zip((first, second), held)]
    for found, mask in zip(kept(pruned, 2), best(scores, total - total // 2)):
        assert np.mean(found == mask) > 0.98  # float32


def test_the_cubic_schedule_rises_as_the_paper_says():
    held = weights(4, (40, 50, 4))
    for step in range(5):
        pruned = network(held).apply(
            "pruner.unstructured", schedule="cubic", initial=0.1, sparsity=0.9, step=step, steps=4
        )
        wanted = 0.9 + (0.1 - 0.9) * (1 - step / 4) ** 3
        gone = 1 - np.mean(kept(pruned, 2)[0])
        assert gone == pytest.approx(wanted, abs=1 / 2000)


def shrunk(w: np.ndarray, by: float) -> np.ndarray:
    norms = np.sqrt((w**2).sum(0, keepdims=True))
    return w * np.maximum(0, 1 - by * np.sqrt(w.shape[0]) / norms)


def test_group_lasso_is_the_step_and_then_the_proximal_step(tmp_path):
    held, rng = weights(5), np.random.default_rng(6)
    x = rng.standard_normal((8, WIDE)).astype("f")
    data = tenon.data.npz(data_of(tmp_path, x, rng.integers(0, CLASSES, 8)))
    given = dict(epochs=1, batch=8)
    plain = tenon.train(network(held), data, optimizer=tenon.optim.sgd(lr=0.1), **given)
    lasso = tenon.optim.group_lasso(lr=0.1, optimizer="trainer.sgd", strength=2.0)
    found = tenon.train(network(held), data, optimizer=lasso, **given)
    for name in ("w0", "w1"):
        wanted = shrunk(np.asarray(plain.constants()[name]), 0.1 * 2.0)
        np.testing.assert_allclose(found.constants()[name], wanted, atol=1e-6)


def test_layers_that_lose_heads_lose_their_ratio_together():
    """0.3 of six heads is 1.8: twelve layers lose 21 of 72, not twelve."""
    rng = np.random.default_rng(7)
    graph = tenon.Graph()
    value = graph.add_input("x", "float32", ["N", 8])
    for i in range(12):
        wide = graph.add_constant(rng.standard_normal((8, 6)).astype("f"), f"w{i}_0")
        back = graph.add_constant(rng.standard_normal((6, 8)).astype("f"), f"w{i}_1")
        made = graph.add_node("MatMul", [value, wide], name=f"fc{i}_0")
        made = graph.add_node("Relu", [made], name=f"relu{i}")
        made = graph.add_node("MatMul", [made, back], name=f"fc{i}_1")
        value = graph.add_node("LayerNormalization", [
            graph.add_node("Add", [value, made], name=f"add{i}"),
            graph.add_constant(np.ones(8, "f"), f"scale{i}"),
        ], name=f"norm{i}", axis=-1)  # fmt: skip
    graph.add_output("y", value)
    report = graph.build().apply("pruner.structured", ratio=0.3, dry_run=True).report
    kept_heads = [one["kept"] for one in report["groups"]]
    assert len(kept_heads) == 12 and set(kept_heads) == {4, 5}
    assert sum(6 - one for one in kept_heads) == 21
