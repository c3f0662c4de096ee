# SPDX-License-Identifier: Apache-2.0
"""What `pruner.similarity` says beside NumPy, and what goes when blocks are taken out."""

import numpy as np
import pytest
import tenon

WIDE, BLOCKS, SAMPLES, BATCH = 16, 4, 96, 32
SIZES = (0.8, 0.02, 0.4, 0.2)  # of what each block adds


def weights() -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    made = []
    for size in SIZES:
        a, b = rng.standard_normal((WIDE, WIDE)), rng.standard_normal((WIDE, WIDE))
        made.append(((a / 4).astype("f"), (size * b / 4).astype("f")))
    return made


def network() -> tenon.Model:
    """x -> four times x + relu(x a) b -> y"""
    graph = tenon.Graph()
    value = graph.add_input("x", "float32", ["N", WIDE])
    for i, (a, b) in enumerate(weights()):
        h = graph.add_node("MatMul", [value, graph.add_constant(a, f"a{i}")], name=f"in{i}")
        h = graph.add_node("Relu", [h], name=f"relu{i}")
        h = graph.add_node("MatMul", [h, graph.add_constant(b, f"b{i}")], name=f"out{i}")
        value = graph.add_node("Add", [value, h], name=f"add{i}")
    graph.add_output("y", value)
    return graph.build()


def states(x: np.ndarray) -> list[np.ndarray]:
    out = [x]
    for a, b in weights():
        out.append(out[-1] + np.maximum(out[-1] @ a, 0) @ b)
    return [one.astype(np.float64) for one in out]


def hsic(k: np.ndarray, l: np.ndarray) -> float:  # noqa: E741
    """Song et al. 2012, equation 5."""
    n = len(k)
    k, l = k - np.diag(np.diag(k)), l - np.diag(np.diag(l))  # noqa: E741
    ones = np.ones(n)
    middle = (ones @ k @ ones) * (ones @ l @ ones) / ((n - 1) * (n - 2))
    return (np.trace(k @ l) + middle - 2 * ones @ k @ l @ ones / (n - 2)) / (n * (n - 3))


def cka(values: list[np.ndarray]) -> np.ndarray:
    sums = np.zeros((len(values), len(values)))
    for begin in range(0, SAMPLES, BATCH):
        grams = [v[begin : begin + BATCH] @ v[begin : begin + BATCH].T for v in values]
        sums += [[hsic(a, b) for b in grams] for a in grams]
    roots = np.sqrt(np.diag(sums))
    return sums / roots[:, None] / roots[None, :]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    x = np.random.default_rng(1).standard_normal((SAMPLES, WIDE)).astype("f")
    path = tmp_path_factory.mktemp("similarity") / "x.npz"
    np.savez(path, x=x)
    return str(path), x


def test_cka_and_influence_are_numpys(data):
    report = network().apply("pruner.similarity", data=data[0], batch=BATCH).report
    values = states(data[1])
    assert report["samples"] == SAMPLES and len(report["values"]) == BLOCKS + 1
    np.testing.assert_allclose(report["cka"], cka(values), atol=1e-5)
    for i, row in enumerate(report["blocks"]):
        x, y = values[i], values[i + 1]
        cosine = (x * y).sum(1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)
        assert row["influence"] == pytest.approx(1 - cosine.mean(), abs=1e-5)
        assert row["cka"] == pytest.approx(report["cka"][i][i + 1])


def test_a_rest_of_too_few_samples_is_left(data, tmp_path):
    path = tmp_path / "more.npz"
    np.savez(path, x=np.concatenate([data[1], data[1][:2]]))
    whole = network().apply("pruner.similarity", data=data[0], batch=BATCH).report
    more = network().apply("pruner.similarity", data=str(path), batch=BATCH).report
    assert more["cka"] == whole["cka"]


def test_independent_values_are_not_alike(tmp_path):
    """The biased form says 0.9 of 20 samples of 200 numbers."""
    rng = np.random.default_rng(2)
    graph = tenon.Graph()
    for name in ("a", "b"):
        x = graph.add_input(name, "float32", ["N", 200])
        w = graph.add_constant(np.eye(200, dtype="f"), f"{name}.w")
        graph.add_output(f"{name}.y", graph.add_node("MatMul", [x, w], name=f"{name}.fc"))
    arrays = {name: rng.standard_normal((20, 200)).astype("f") for name in "ab"}
    np.savez(tmp_path / "ab.npz", **arrays)
    report = (
        graph.build().apply("pruner.similarity", data=str(tmp_path / "ab.npz"), batch=20).report
    )
    np.testing.assert_allclose(np.diag(report["cka"]), 1)
    assert abs(report["cka"][0][1]) < 0.2


def test_blocks_of_least_influence_lose_least(data):
    model, x = network(), data[1]
    whole = states(x)[-1]

    def lost(**options) -> float:
        left = model.apply("pruner.depth", blocks=2, **options)
        found = left.compile(backend="reference").run({"x": x})[0]
        return float(((found - whole) ** 2).sum())

    by_influence = lost(data=data[0])
    at_random = [lost(importance="random", seed=seed) for seed in range(6)]
    assert by_influence <= min(at_random)
    assert by_influence < 0.5 * np.mean(at_random)


def test_too_few_samples_and_too_little_to_compare_are_refused(data, tmp_path):
    np.savez(tmp_path / "x.npz", x=data[1][:3])
    with pytest.raises(tenon.TenonError, match="batch|samples"):
        network().apply("pruner.similarity", data=str(tmp_path / "x.npz"))
    with pytest.raises(tenon.TenonError, match="expected two values"):
        network().apply("pruner.similarity", data=data[0], skip=["add*", "in*", "out*"])
