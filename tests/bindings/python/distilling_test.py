# SPDX-License-Identifier: Apache-2.0
"""A student that learns from a teacher, and training in 8 bits: data in, converted model out."""

import numpy as np
import pytest
import tenon

CLASSES, WIDE = 6, 12


def points(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Classes that are no half spaces: the sign pattern of products of neighbours."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, WIDE)).astype("f")
    scores = np.stack([x[:, i] * x[:, i + 1] for i in range(CLASSES)], 1)
    return x, scores.argmax(1)


def network(hidden: int, seed: int) -> tenon.Model:
    rng = np.random.default_rng(seed)
    graph = tenon.Graph()
    h = graph.add_input("x", "float32", ["batch", WIDE])
    sizes = [WIDE, hidden, hidden, CLASSES]
    for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
        w = graph.add_constant((rng.standard_normal((a, b)) * np.sqrt(2 / a)).astype("f"), f"w{i}")
        bias = graph.add_constant(np.zeros(b, "f"), f"b{i}")
        h = graph.add_node("Gemm", [h, w, bias], name=f"fc{i}")
        if i < 2:
            h = graph.add_node("Relu", [h], name=f"relu{i}")
    graph.add_output("logits", h)
    return graph.build()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("points")
    for name, seed, n in (("train", 0, 1500), ("test", 1, 500)):
        x, label = points(seed, n)
        np.savez(folder / f"{name}.npz", x=x, label=label)
        np.savez(folder / f"{name}_unlabelled.npz", x=x)
    return folder


@pytest.fixture(scope="module")
def teacher(data):
    return tenon.train(
        network(48, 0),
        tenon.data.npz(data / "train.npz"),
        epochs=40,
        batch=50,
        optimizer=tenon.optim.adamw(lr=tenon.schedule.cosine(base=5e-3)),
    )


def accuracy(model, data) -> float:
    return tenon.evaluate(model, tenon.data.npz(data / "test.npz"), batch=100)["accuracy"]


def test_an_output_that_the_loss_does_not_read_is_not_trained(data, teacher):
    """As the boxes of a detector whose classes alone are distilled."""
    rng = np.random.default_rng(1)
    graph = tenon.Graph()
    x = graph.add_input("x", "float32", ["batch", WIDE])
    for name in ("logits", "boxes"):
        w = graph.add_constant(rng.standard_normal((WIDE, CLASSES)).astype("f"), f"w_{name}")
        graph.add_output(name, graph.add_node("MatMul", [x, w], name=name))
    student = graph.build()

    trained = tenon.train(
        student,
        tenon.data.npz(data / "train_unlabelled.npz"),
        epochs=1,
        loss=tenon.loss.distill(teacher=teacher, alpha=1),
    )

    before, after = student.constants(), trained.constants()
    assert not np.array_equal(after["w_logits"], before["w_logits"])
    np.testing.assert_array_equal(after["w_boxes"], before["w_boxes"])


def test_a_student_learns_from_answers_alone(data, teacher):
    """No label is seen: all that the student knows comes from the teacher."""
    student = tenon.train(
        network(24, 1),
        tenon.data.npz(data / "train_unlabelled.npz"),
        loss=tenon.loss.distill(teacher=teacher, temperature=2, alpha=1),
        epochs=40,
        batch=50,
        optimizer=tenon.optim.adamw(lr=tenon.schedule.cosine(base=5e-3)),
    )

    assert accuracy(teacher, data) > 0.75
    assert accuracy(network(24, 1), data) < 0.4
    assert accuracy(student, data) > accuracy(teacher, data) - 0.12
    assert set(student.constants()) == set(network(24, 1).constants())


def test_the_teacher_itself_has_nothing_to_learn(data, teacher):
    trained = tenon.train(
        teacher,
        tenon.data.npz(data / "train_unlabelled.npz"),
        loss=tenon.loss.distill(teacher=teacher, alpha=1),
        rate=0.1,
    )

    assert trained.report["history"][-1]["loss"] < 1e-7  # round-off
    for name, before in teacher.constants().items():
        np.testing.assert_allclose(trained.constants()[name], before, atol=1e-5)


def test_cached_answers_train_the_same(data, teacher):
    train = tenon.data.npz(data / "train.npz")
    cached = tenon.data.Dataset("distiller.cached", data=train, teacher=teacher)
    options = dict(epochs=2, batch=50, rate=0.05, seed=3)

    live = tenon.train(network(24, 1), train, loss=tenon.loss.distill(teacher=teacher), **options)
    kept = tenon.train(
        network(24, 1),
        cached,
        target=["label", "teacher/logits"],
        loss=tenon.loss.distill(cached=True),
        **options,
    )

    for name, expected in live.constants().items():
        np.testing.assert_allclose(kept.constants()[name], expected, atol=1e-5)


def test_hints_train_an_adapter_beside_the_student(data, teacher):
    student = tenon.train(
        network(24, 1),
        tenon.data.npz(data / "train.npz"),
        loss=tenon.loss.distill(teacher=teacher, features=["relu1"], weight=10),
        epochs=3,
        batch=50,
        optimizer=tenon.optim.adamw(lr=2e-3),
    )

    losses = [epoch["loss"] for epoch in student.report["history"]]
    assert losses == sorted(losses, reverse=True)
    assert set(student.constants()) == set(network(24, 1).constants())


def test_training_recovers_what_three_bits_cost(data, teacher):
    train = tenon.data.npz(data / "train.npz")
    stored = teacher.apply("quantizer.static", data=train, weight_bits=3)
    trained = tenon.train(
        teacher.apply("quantizer.qat", data=train, weight_bits=3),
        train,
        validation=tenon.data.npz(data / "test.npz"),
        validate_as="quantizer.convert",
        metric="accuracy",
        loss=tenon.loss.distill(teacher=teacher),
        epochs=8,
        batch=50,
        # Weights of 3 bits swing across rounding ties until the rate falls; without that the end
        # hangs on the last bit of a sum.
        optimizer=tenon.optim.adamw(lr=tenon.schedule.cosine(base=5e-3)),
    )
    converted = trained.apply("quantizer.convert")

    lost = accuracy(teacher, data) - accuracy(stored, data)
    left = accuracy(teacher, data) - accuracy(converted, data)
    assert lost > 0.03
    assert left < lost / 2
    assert abs(accuracy(trained, data) - accuracy(converted, data)) <= 0.01  # rounded biases
    assert trained.report["history"][-1]["accuracy"] == accuracy(converted, data)
    codes = np.asarray(converted.constants()["w0_quantized"])
    assert codes.dtype == np.int8 and np.abs(codes).max() == 3


def test_both_backends_take_the_same_steps_in_three_bits(data, teacher, tmp_path):
    x, label = points(0, 100)
    np.savez(tmp_path / "two_steps.npz", x=x, label=label)
    model = teacher.apply("quantizer.qat", data=data / "train.npz", weight_bits=3)
    options = dict(data=tenon.data.npz(tmp_path / "two_steps.npz"), epochs=2, batch=50, rate=0.05)

    fast = tenon.train(model, backend="onednn", **options)
    plain = tenon.train(model, backend="reference", **options)

    assert fast.report["fallback_nodes"] == []
    for name, expected in plain.constants().items():
        np.testing.assert_allclose(fast.constants()[name], expected, atol=1e-5)


def test_the_default_teacher_is_the_uncompressed_model(data, teacher):
    train = tenon.data.npz(data / "train.npz")
    options = dict(epochs=1, batch=50, rate=0.05)

    def same(student):
        given = tenon.train(student, train, loss=tenon.loss.distill(teacher=teacher), **options)
        default = tenon.train(student, train, loss=tenon.loss.distill(), **options)
        for name, expected in given.constants().items():
            np.testing.assert_array_equal(default.constants()[name], expected, name)
        return default

    pruned = teacher.apply("pruner.structured", ratio=0.5)
    trained = same(pruned)
    # The original of an original is the first one, also behind training.
    same(trained.apply("quantizer.qat", data=train))
    same(teacher.apply("decomposer.svd", rank=8, max_ratio=1, measure=False))
    same(teacher.apply("pruner.unstructured", sparsity=0.5))


def test_a_finished_model_lets_its_original_go(data, teacher):
    train = tenon.data.npz(data / "train.npz")
    pruned = teacher.apply("pruner.structured", ratio=0.5)
    rounded = pruned.apply("quantizer.qat", data=train)
    assert "note original" in pruned.text() and "note original" in rounded.text()

    for finished in (
        rounded.apply("quantizer.convert"),
        pruned.apply("quantizer.static", data=train),
    ):
        assert "note original" not in finished.text()


def test_without_original_or_teacher_the_loss_says_so(data, teacher, tmp_path):
    train = tenon.data.npz(data / "train.npz")
    with pytest.raises(tenon.InvalidArgument, match="option teacher: .* no original"):
        tenon.train(network(24, 1), train, loss=tenon.loss.distill())
    pruned = teacher.apply("pruner.structured", ratio=0.5)
    pruned.save(tmp_path / "pruned.onnx")
    with pytest.raises(tenon.InvalidArgument, match="no original"):
        tenon.train(tenon.load(tmp_path / "pruned.onnx"), train, loss=tenon.loss.distill())


def test_scales_and_zero_points_are_not_trained(data, teacher):
    train = tenon.data.npz(data / "train.npz")
    model = teacher.apply("quantizer.qat", data=train)
    trained = tenon.train(model, train, rate=0.1)

    before, after = model.constants(), trained.constants()
    assert set(before) == set(after)
    changed = {n for n in before if (np.asarray(before[n]) != np.asarray(after[n])).any()}
    assert changed == {f"{kind}{i}" for kind in "wb" for i in range(3)}
    assert trained.report["fallback_nodes"] == []
