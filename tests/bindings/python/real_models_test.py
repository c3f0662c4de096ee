# SPDX-License-Identifier: Apache-2.0
"""Published models that `scripts/fetch` has put into .cache/models: both backends agree, onednn
runs all of it, and 8 bits answer alike. The pinned ones must be there; others are skipped."""

import pathlib
import sys

import numpy as np
import pytest
import tenon

ROOT = pathlib.Path(__file__).resolve().parents[3]
CACHE = ROOT / ".cache" / "models"
sys.path.insert(0, str(ROOT / "scripts"))

from models.pinned import is_pinned  # noqa: E402

RATE = np.array(16000)
SILERO_BY_RATE = "silero_op15"  # what follows its If over the rate has no shape before it runs
# file, shapes of the inputs, inputs of fixed value
MASK = np.ones((1, 16), np.int64)
MODELS = {
    "minilm": (
        {"input_ids": (1, 16)},
        {"attention_mask": MASK, "token_type_ids": np.zeros_like(MASK)},
    ),
    "ppocr_rec": ({"x": (1, 3, 48, 64)}, {}),
    "magika": ({"bytes": (1, 2048)}, {}),
    "silero_no_if": ({"input": (1, 576), "state": (2, 1, 128)}, {}),
    SILERO_BY_RATE: ({"input": (1, 576), "state": (2, 1, 128)}, {"sr": RATE}),
    "silero_nested_if": ({"input": (1, 576), "state": (2, 1, 128)}, {"sr": RATE}),
    "crepe_tiny": ({"frames": (2, 1024)}, {}),
    "ppocr_cls": ({"x": (1, 3, 48, 96)}, {}),
    "surfaces_boosting": ({"input": (4, 4)}, {}),
}


def feeds_of(model: tenon.Model, shapes: dict, fixed: dict) -> dict[str, np.ndarray]:
    random = np.random.default_rng(11)
    dtypes = {port.name: port.dtype for port in model.inputs}
    feeds = dict(fixed)
    for name, shape in shapes.items():
        whole = np.issubdtype(np.dtype(dtypes[name]), np.integer)
        array = random.integers(0, 257, shape) if whole else random.standard_normal(shape)
        feeds[name] = array.astype(dtypes[name])
    return feeds


@pytest.fixture(params=MODELS)
def case(request):
    path = CACHE / f"{request.param}.onnx"
    if not path.exists():
        missing = pytest.fail if is_pinned(path.name) else pytest.skip
        missing(f"{path.name} is not fetched: run scripts/fetch tests")
    model = tenon.load(path)
    return request.param, model, feeds_of(model, *MODELS[request.param])


def test_backends_agree_and_nothing_falls_back(case):
    name, model, feeds = case
    plan = model.compile(backend="onednn")

    ours = plan.run(feeds)
    wanted = model.compile(backend="reference").run(feeds)

    assert name == SILERO_BY_RATE or plan.describe()["fallback_nodes"] == []
    for got, reference in zip(ours, wanted, strict=True):
        span = max(float(np.ptp(reference)), 1e-3)
        np.testing.assert_allclose(got, reference, rtol=0, atol=1e-4 * span)


def test_weights_in_8_bits_answer_alike(case):
    _, model, feeds = case
    wanted = model.compile(backend="onednn").run(feeds)

    small = model.apply("fusion.default").apply("quantizer.weights")

    for got, plain in zip(small.compile(backend="onednn").run(feeds), wanted, strict=True):
        a, b = np.ravel(got).astype(float), np.ravel(plain).astype(float)
        assert a @ b >= 0.98 * np.linalg.norm(a) * np.linalg.norm(b)
