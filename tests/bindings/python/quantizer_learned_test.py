# SPDX-License-Identifier: Apache-2.0
"""Learned step sizes of weights (LSQ) beside the same in NumPy, and what they are worth."""

from pathlib import Path

import numpy as np
import pytest
import tenon
from quantizer_test import answers, mlp, saved

N, WIDE, OUT = 64, 12, 6


def problem(folder: Path, seed: int = 51):
    """One product whose targets another weight made; its own has numbers that stand out."""
    rng = np.random.default_rng(seed)
    w = (rng.standard_normal((WIDE, OUT)) / np.sqrt(WIDE)).astype("f")
    x = rng.standard_normal((N, WIDE)).astype("f")
    y = (x @ w).astype("f")
    w[0] *= 4
    np.savez(folder / "train.npz", x=x, label=y)
    return mlp(folder, [w]), w, x, y


def to_train(model: tenon.Model, folder: Path, bits: int, scales: str, **options) -> tenon.Model:
    return model.apply(
        "quantizer.qat",
        data=str(folder / "train.npz"),
        observer="minmax",
        weight_bits=bits,
        scales=scales,
        **options,
    )


def fit(model: tenon.Model, folder: Path, epochs: int, rate: float, batch=N) -> tenon.Model:
    return tenon.train(
        model,
        tenon.data.npz(folder / "train.npz"),
        epochs=epochs,
        batch=batch,
        shuffle=False,
        loss="mse",
        optimizer=tenon.optim.sgd(lr=rate),
        seed=1,
    )


def numbers(model: tenon.Model) -> dict[str, np.ndarray]:
    return {name: np.asarray(value) for name, value in model.constants().items()}


def least_squares(w, largest: int, axis) -> np.ndarray:
    """Of scales from that of the largest number down to 0.3 of it, the one of least error."""
    widest = np.abs(w).max(axis).reshape(-1) / np.float32(largest)
    found = []
    for share in np.arange(100, 29, -5, dtype="f") / np.float32(100):
        scale = share * widest
        error = w - np.clip(np.round(w / scale), -largest, largest) * scale
        found.append((np.square(error.astype("d")).sum(axis).reshape(-1), scale))
    errors, scales = (np.stack(some) for some in zip(*found))
    return np.take_along_axis(scales, errors.argmin(0)[None], 0)[0]


@pytest.mark.parametrize("scales", ["largest", "learned"])
def test_a_layer_that_begins_as_zeros_is_trained(scales, tmp_path):
    """A new head: in the first updates already, and as it will be stored."""
    _, _, x, y = problem(tmp_path)
    model = to_train(mlp(tmp_path, [np.zeros((WIDE, OUT), "f")]), tmp_path, 8, scales)
    trained = fit(model, tmp_path, epochs=200, rate=0.5)
    assert all(np.abs(numbers(trained)["w0"]).max(0) > 0)
    stored = trained.apply("quantizer.convert")
    left = np.square(np.asarray(stored.compile()(x)[0]) - y).mean()
    assert left < 0.05 * np.square(y).mean()


def by_rule(w, s, x, y, largest: int, steps: int, rate: float):
    """Esser et al. 2020, section 2.1 and 2.2; x as it is rounded."""
    w, s = w.astype("d"), s.astype("d")
    axis = 0 if s.size > 1 else None
    share = 1 / np.sqrt(w.size / s.size * largest)
    for _ in range(steps):
        ratio = w / s
        inside = np.abs(ratio) <= largest
        q = np.clip(np.round(ratio), -largest, largest)
        each = x.T @ (2 * (x @ (q * s) - y) / y.size)
        slope = np.where(inside, q - ratio, np.sign(ratio) * largest)
        w, s = (
            w - rate * each * inside,
            s - rate * share * np.sum(each * slope, axis).reshape(s.shape),
        )
    return w, s


@pytest.mark.parametrize("per_channel", [True, False])
def test_steps_and_weights_move_as_the_rule_says(tmp_path: Path, per_channel: bool) -> None:
    model, w, x, y = problem(tmp_path)
    rounded = to_train(model, tmp_path, 4, "learned", per_channel=per_channel)
    before = numbers(rounded)
    axis = 0 if per_channel else None
    first = least_squares(w, 7, axis)
    assert (first < np.abs(w).max(axis).reshape(-1) / 7).any()  # what stands out is cut
    np.testing.assert_allclose(before["w0_step"], first, rtol=1e-6)
    scale, zero = float(before["x_scale"]), float(before["x_zero_point"])
    held = (np.clip(np.round(x / scale) + zero, 0, 255) - zero) * scale
    begun = fit(rounded, tmp_path, 1, 0.1)  # the largest numbers no longer lie on the cut
    start, after = numbers(begun), numbers(fit(begun, tmp_path, 5, 0.1))
    assert not np.array_equal(start["w0_step"], before["w0_step"])
    right_w, right_s = by_rule(start["w0"], start["w0_step"], held, y, 7, 5, 0.1)
    assert (np.abs(right_w) > 7 * right_s).any()  # what is cut has its part in it
    np.testing.assert_allclose(after["w0"], right_w, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(after["w0_step"], right_s, rtol=1e-4)


def test_what_is_converted_computes_what_was_trained(tmp_path: Path) -> None:
    model, _, x, _ = problem(tmp_path)
    trained = fit(to_train(model, tmp_path, 4, "learned"), tmp_path, 20, 0.1)
    small = trained.apply("quantizer.convert")
    np.testing.assert_allclose(answers(small, x), answers(trained, x), rtol=1e-5, atol=1e-6)
    stored = numbers(small)
    assert stored["w0_quantized"].dtype == np.int8
    assert np.abs(stored["w0_quantized"]).max() == 7
    assert not any(name.endswith("_step") for name in stored)
    untouched = to_train(model, tmp_path, 8, "learned").apply("quantizer.convert")
    plain = model.apply("quantizer.static", data=saved(tmp_path, x), observer="minmax")
    np.testing.assert_allclose(answers(untouched, x), answers(plain, x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("bits", [2, 3])
def test_learned_steps_lose_less_in_few_bits(tmp_path: Path, bits: int) -> None:
    """Normal weights, of which the largest say little, and that are right as they are."""
    rng = np.random.default_rng(5)
    w = (rng.standard_normal((128, 8)) / np.sqrt(128)).astype("f")
    x = rng.standard_normal((512, 128)).astype("f")
    y = x @ w
    np.savez(tmp_path / "train.npz", x=x, label=y)
    model, losses = mlp(tmp_path, [w]), {}
    for scales in ("largest", "learned"):
        trained = fit(to_train(model, tmp_path, bits, scales), tmp_path, 60, 0.05, 512)
        found = answers(trained.apply("quantizer.convert"), x)
        losses[scales] = float(np.square(found - y).mean())
    assert losses["learned"] < 0.7 * losses["largest"], losses


@pytest.mark.parametrize("scales", ["largest", "learned"])
@pytest.mark.parametrize("apply", ["zero", "nodes"])
def test_zeros_of_pruned_weights_stay_while_others_learn(
    tmp_path: Path, scales: str, apply: str
) -> None:
    model, *_ = problem(tmp_path)
    sparse = model.apply("pruner.unstructured", sparsity=0.5, apply=apply).apply("fusion.default")
    name, weight = next((n, w) for n, w in numbers(sparse).items() if w.shape == (WIDE, OUT))
    gone = weight == 0
    assert gone.mean() == 0.5

    def stored(**options) -> np.ndarray:
        trained = fit(to_train(sparse, tmp_path, 8, scales, **options), tmp_path, 20, 0.1)
        return numbers(trained.apply("quantizer.convert"))[f"{name}_quantized"]

    before = numbers(to_train(sparse, tmp_path, 8, scales).apply("quantizer.convert"))
    kept = stored()
    assert not kept[gone].any()
    assert (kept != before[f"{name}_quantized"])[~gone].mean() > 0.5
    assert stored(zeros="train")[gone].any()


def test_a_choice_that_is_none_is_said(tmp_path: Path) -> None:
    model, *_ = problem(tmp_path)
    with pytest.raises(tenon.TenonError, match="scales: expected one of largest, learned"):
        to_train(model, tmp_path, 4, "lerned")
