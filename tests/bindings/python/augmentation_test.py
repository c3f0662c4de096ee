# SPDX-License-Identifier: Apache-2.0
"""Networks trained on augmented samples: mixed ones are learnt, runs go on with the same draws."""

import numpy as np
import pytest
import tenon as tn
from tenon import nn


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Three textures in noise, 96 to train on and 48 others."""
    folder, rng = tmp_path_factory.mktemp("textures"), np.random.default_rng(0)
    texture = rng.random((3, 2, 8, 8)) * 160
    made = {}
    for part, count in [("train", 96), ("test", 48)]:
        label = rng.integers(0, 3, count)
        image = texture[label] + rng.random((count, 2, 8, 8)) * 95
        np.savez(folder / f"{part}.npz", image=image.astype("u1"), label=label)
        made[part] = folder / f"{part}.npz"
    return made


def augmented(path):
    data = tn.data.crop(data=tn.data.npz(path), padding=1, padding_mode="edge")
    data = tn.data.erasing(data=data, p=0.3)
    return tn.data.normalize(data=data, mean=0.5, std=0.25)


def network():
    layers = nn.Sequential(nn.Flatten(), nn.Linear(16), tn.relu, nn.Linear(3))
    return nn.build(layers, {"image": ("N", 2, 8, 8)}, seed=1)


def fit(data, **options):
    given = {"epochs": 30, "batch": 16, "rate": 0.05, "backend": "reference", "seed": 3}
    return tn.train(network(), data, **{**given, **options})


def values(model):
    return {name: np.asarray(x) for name, x in model.constants().items()}


def test_mixed_samples_are_trained_on_and_plain_ones_validated(data):
    plain = tn.data.normalize(data=tn.data.npz(data["test"]), mean=0.5, std=0.25)
    for mixing in ("mixup", "cutmix"):
        mixed = getattr(tn.data, mixing)(data=augmented(data["train"]), classes=3, alpha=0.4)
        model = fit(mixed, validation=plain, metric="accuracy", loss=tn.loss.cross_entropy())
        assert model.report["history"][-1]["accuracy"] > 0.9
        assert model.report["seconds_waited"] >= 0


def test_labels_of_the_validation_are_checked(data, tmp_path):
    with np.load(data["test"]) as arrays:
        np.savez(tmp_path / "bad.npz", image=arrays["image"], label=arrays["label"] + 1)
    mixed = tn.data.mixup(data=augmented(data["train"]), classes=3)
    bad = tn.data.normalize(data=tn.data.npz(tmp_path / "bad.npz"))
    with pytest.raises(
        tn.InvalidArgument, match="field label: label 3 of sample .*: expected 0 to 2"
    ):
        fit(mixed, validation=bad)


def test_a_run_goes_on_with_the_same_draws(data, tmp_path):
    mixed = tn.data.mixup(data=augmented(data["train"]), classes=3)
    whole = values(fit(mixed, epochs=4))

    def fails_at_15(point):
        assert point["step"] != 15, "torn off"

    stop = tn.callback(step=fails_at_15)
    with pytest.raises(AssertionError, match="torn off"):
        fit(mixed, epochs=4, run=tmp_path / "run", callbacks=[stop])
    rest = values(fit(mixed, epochs=4, run=tmp_path / "run", resume=True))
    assert all((rest[name] == x).all() for name, x in whole.items())
    other = values(fit(mixed, epochs=4, seed=4))
    assert any((other[name] != x).any() for name, x in whole.items())


def test_draws_follow_the_seed_of_the_run(data):
    """Not shuffled, the seed decides nothing but what is drawn."""
    one, other = (
        values(fit(augmented(data["train"]), epochs=1, shuffle=False, seed=seed)) for seed in (1, 2)
    )
    assert any((other[name] != x).any() for name, x in one.items())
