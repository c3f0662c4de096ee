# SPDX-License-Identifier: Apache-2.0
"""What a student learns of values inside its teacher, and of others that learn with it: each loss
beside its formula in NumPy, and what must not change it."""

import numpy as np
import pytest
import tenon

N, WIDE, CLASSES = 6, 5, 4
# What PyTorch 2.15 computes from these numbers in float64 (pairwise clamp and sqrt, F.normalize and
# bmm, smooth_l1_loss; kl_div with batchmean and cross_entropy, the other's logits detached).
TORCH = {"relation": 14.92163914538583, "attention": 0.04011243040513109}
TORCH_MUTUAL = {
    (0.5, 1, -1): (3.1055914376451343, -0.04213071042651853, 0.00040141001866375245),
    (1, 3, -1): (2.864321596122013, -0.009365416720208459, 0.0016896779363782463),
}


def held(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype("f")


def model_of(inner: np.ndarray, outer: np.ndarray, image: bool = False) -> tenon.Model:
    """x -> inside -> y; a 1x1 convolution and the mean over places for images."""
    graph = tenon.Graph()
    shape = ["N", WIDE, 3, 2] if image else ["N", WIDE]
    x = graph.add_input("x", "float32", shape)
    w = graph.add_constant(inner, "inner")
    inside = graph.add_node("Conv" if image else "MatMul", [x, w], name="inside")
    if image:
        pooled = graph.add_node("GlobalAveragePool", [inside], name="pool")
        inside = graph.add_node("Flatten", [pooled], name="flat")
    y = graph.add_node("MatMul", [inside, graph.add_constant(outer, "outer")], name="y")
    graph.add_output("y", y)
    return graph.build()


def loss_value(student, loss, x, folder, label=None) -> float:
    """The loss that a step of training at rate 0 reports."""
    fields = {"x": x} | ({} if label is None else {"label": label})
    np.savez(folder / "batch.npz", **fields)
    summary = tenon.train(
        student, tenon.data.npz(folder / "batch.npz"), loss=loss, epochs=1, batch=len(x),
        optimizer=tenon.optim.sgd(lr=0.0), seed=0,
    )  # fmt: skip
    return summary.report["history"][-1]["loss"]


def huber(a: np.ndarray, b: np.ndarray) -> float:
    off = np.abs(a - b)
    return float(np.where(off < 1, 0.5 * off**2, off - 0.5).mean())


def distances(f: np.ndarray) -> np.ndarray:
    d = np.linalg.norm(f[None] - f[:, None], axis=2)
    return d / d[d > 0].mean()


def angles(f: np.ndarray) -> np.ndarray:
    e = f[None] - f[:, None]
    e = e / np.maximum(np.linalg.norm(e, axis=2, keepdims=True), 1e-12)
    return e @ e.transpose(0, 2, 1)


def relation(s: np.ndarray, t: np.ndarray) -> float:
    """Park et al. 2019, weights 25 and 50."""
    s, t = s.astype(np.float64), t.astype(np.float64)
    return 25 * huber(distances(s), distances(t)) + 50 * huber(angles(s), angles(t))


def test_relation_is_parks(tmp_path):
    x, a, b = held(0, N, WIDE), held(1, WIDE, 7), held(2, WIDE, 3)
    teacher, student = model_of(a, held(3, 7, CLASSES)), model_of(b, held(4, 3, CLASSES))
    loss = tenon.loss.features(teacher=teacher, features="inside", match="relation", alpha=1)
    answers = tenon.loss.distill(teacher=teacher, alpha=1)
    found = loss_value(student, loss, x, tmp_path) - loss_value(student, answers, x, tmp_path)
    assert found == pytest.approx(relation(x @ b, x @ a), rel=1e-4)
    assert found == pytest.approx(TORCH["relation"], rel=1e-4)


def test_relation_knows_no_rotation_and_no_scale(tmp_path):
    x, a = held(0, N, WIDE), held(1, WIDE, 3)
    transposed, _ = np.linalg.qr(held(5, 3, 3))
    outer = held(3, 3, CLASSES)
    teacher, student = model_of(a, outer), model_of((a @ transposed * 2.5).astype("f"), outer)
    options = dict(teacher=teacher, features="inside", alpha=1)
    answers = loss_value(student, tenon.loss.distill(teacher=teacher, alpha=1), x, tmp_path)
    same = loss_value(student, tenon.loss.features(match="relation", **options), x, tmp_path)
    other = loss_value(student, tenon.loss.features(match="hint", **options), x, tmp_path)
    assert same - answers == pytest.approx(0, abs=2e-3)
    assert other - answers > 0.1


def attention(s: np.ndarray, t: np.ndarray) -> float:
    """Zagoruyko and Komodakis 2017, maps of norm 1."""

    def mapped(f: np.ndarray) -> np.ndarray:
        flat = (f.astype(np.float64) ** 2).sum(1).reshape(len(f), -1)
        return flat / np.linalg.norm(flat, axis=1, keepdims=True)

    return float(((mapped(s) - mapped(t)) ** 2).mean())


def test_attention_is_the_difference_of_maps(tmp_path):
    x = held(0, N, WIDE, 3, 2)
    a, b = held(1, 7, WIDE, 1, 1), held(2, 3, WIDE, 1, 1)
    teacher = model_of(a, held(3, 7, CLASSES), image=True)
    student = model_of(b, held(4, 3, CLASSES), image=True)
    loss = tenon.loss.features(
        teacher=teacher, features="inside", match="attention", weight=1000, alpha=1
    )
    answers = loss_value(student, tenon.loss.distill(teacher=teacher, alpha=1), x, tmp_path)
    found = loss_value(student, loss, x, tmp_path) - answers
    inside = [np.einsum("oi,nihw->nohw", w[:, :, 0, 0], x) for w in (b, a)]
    assert found == pytest.approx(1000 * attention(*inside), rel=1e-3)
    assert found == pytest.approx(1000 * TORCH["attention"], rel=1e-3)


@pytest.mark.parametrize("match", ["attention", "relation"])
def test_a_student_that_is_its_teacher_has_nothing_to_learn(tmp_path, match):
    x, a, outer = held(0, N, WIDE, 3, 2), held(1, 7, WIDE, 1, 1), held(3, 7, CLASSES)
    teacher, student = (model_of(a, outer, image=True) for _ in range(2))
    loss = tenon.loss.features(teacher=teacher, features="inside", match=match, alpha=1)
    np.savez(tmp_path / "x.npz", x=x)
    summary = tenon.train(
        student, tenon.data.npz(tmp_path / "x.npz"), loss=loss, epochs=1, batch=N,
        optimizer=tenon.optim.sgd(lr=1.0),
    )  # fmt: skip
    assert summary.report["history"][-1]["loss"] == pytest.approx(0, abs=1e-6)
    np.testing.assert_allclose(summary.constants()["inner"], a, atol=1e-5)


def test_values_that_do_not_fit_are_named(tmp_path):
    x = held(0, N, WIDE)
    teacher = model_of(held(1, WIDE, 7), held(3, 7, CLASSES))
    student = model_of(held(2, WIDE, 3), held(4, 3, CLASSES))
    loss = tenon.loss.features(teacher=teacher, features="inside", match="attention", alpha=1)
    with pytest.raises(tenon.TenonError, match="inside.*rank 3 and up, for match attention"):
        loss_value(student, loss, x, tmp_path)


def two_heads() -> tenon.Model:
    graph = tenon.Graph()
    x = graph.add_input("x", "float32", ["N", WIDE])
    for i in range(2):
        w = graph.add_constant(held(10 + i, WIDE, CLASSES), f"w{i}")
        graph.add_output(f"y{i}", graph.add_node("MatMul", [x, w], name=f"y{i}"))
    return graph.build()


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@pytest.mark.parametrize(
    ("alpha", "temperature", "leader"), [(0.5, 1, -1), (1, 3, -1), (0.3, 2, 1)]
)
def test_networks_teach_each_other(tmp_path, alpha, temperature, leader):
    """Loss and gradients: answers of the others are not moved by what they teach."""
    x, label = held(0, N, WIDE), np.arange(N) % CLASSES
    w = [held(10 + i, WIDE, CLASSES).astype(np.float64) for i in range(2)]
    logits = [x @ one for one in w]
    wanted, slopes = 0.0, []
    for i in (0, 1):
        own, other = softmax(logits[i] / temperature), softmax(logits[1 - i] / temperature)
        soft = temperature**2 * (other * np.log(other / own)).sum(1).mean()
        hard = -np.log(softmax(logits[i])[np.arange(N), label]).mean()
        share = 0 if leader == i else alpha
        wanted += share * soft + (1 - share) * hard
        one = softmax(logits[i])
        one[np.arange(N), label] -= 1
        slope = share * temperature * (own - other) + (1 - share) * one
        slopes.append(x.T @ slope / N)
    golden = TORCH_MUTUAL.get((alpha, temperature, leader))
    if golden:
        assert (wanted, slopes[0][0, 0], slopes[1][2, 3]) == pytest.approx(golden, rel=1e-5)
    if alpha == 1:
        label = None
    loss = tenon.loss.mutual(alpha=alpha, temperature=temperature, leader=leader)
    assert loss_value(two_heads(), loss, x, tmp_path, label) == pytest.approx(wanted, rel=1e-4)
    fields = {"x": x} | ({} if label is None else {"label": label})
    np.savez(tmp_path / "batch.npz", **fields)
    summary = tenon.train(
        two_heads(), tenon.data.npz(tmp_path / "batch.npz"), loss=loss, epochs=1, batch=N,
        optimizer=tenon.optim.sgd(lr=0.5),
    )  # fmt: skip
    for i in (0, 1):
        np.testing.assert_allclose(
            summary.constants()[f"w{i}"], w[i] - 0.5 * slopes[i], rtol=1e-4, atol=1e-5
        )


def test_mutual_wants_more_than_one_network(tmp_path):
    student = model_of(held(2, WIDE, 3), held(4, 3, CLASSES))
    with pytest.raises(tenon.TenonError, match="two outputs and more"):
        loss_value(student, tenon.loss.mutual(alpha=1), held(0, N, WIDE), tmp_path)
    with pytest.raises(tenon.TenonError, match="option leader: expected -1 or an output below 2"):
        loss_value(two_heads(), tenon.loss.mutual(alpha=1, leader=2), held(0, N, WIDE), tmp_path)


def cross_entropy(z: np.ndarray, label: np.ndarray) -> float:
    return -np.log(softmax(z)[np.arange(len(label)), label]).mean()


def test_labels_are_over_the_axis_of_the_classes(tmp_path):
    """As many places as classes: the other axis would fit as well."""
    graph = tenon.Graph()
    x = graph.add_input("x", "float32", ["N", CLASSES, WIDE])
    w = held(3, WIDE, CLASSES)
    y = graph.add_node("MatMul", [x, graph.add_constant(w, "w")], name="y")
    graph.add_output("y", y)
    student = graph.build()
    x, label = held(0, N, CLASSES, WIDE), np.arange(N * CLASSES).reshape(N, CLASSES) % CLASSES
    loss = tenon.loss.Loss("distiller.response", teacher=student, axis=-1, alpha=0.25)
    wanted = 0.75 * cross_entropy((x @ w).reshape(-1, CLASSES), label.ravel())
    assert loss_value(student, loss, x, tmp_path, label) == pytest.approx(wanted, rel=1e-5)


def test_labels_are_of_the_output_that_is_compared(tmp_path):
    x, label = held(0, N, WIDE), np.arange(N) % CLASSES
    student = two_heads()
    for prediction in (0, 1):
        loss = tenon.loss.Loss(
            "distiller.response", teacher=student, prediction=prediction,
            teacher_output=f"y{prediction}", alpha=0.25,
        )  # fmt: skip
        wanted = 0.75 * cross_entropy(x @ held(10 + prediction, WIDE, CLASSES), label)
        assert loss_value(student, loss, x, tmp_path, label) == pytest.approx(wanted, rel=1e-5)
