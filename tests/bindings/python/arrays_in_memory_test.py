# SPDX-License-Identifier: Apache-2.0
"""Data sets of arrays that Python holds, and of Python's own sequences of samples."""

import numpy as np
import pytest
import tenon as tn

RANDOM = np.random.default_rng(3)
X = RANDOM.standard_normal((20, 6)).astype("f")
LABEL = RANDOM.integers(0, 3, 20)


@pytest.fixture
def model():
    graph = tn.Graph()
    x = graph.add_input("x", "float32", ["batch", 6])
    weight = RANDOM.standard_normal((6, 3)).astype("f")
    graph.add_output("y", graph.add_node("MatMul", [x, graph.add_constant(weight, "w")]))
    return graph.build()


def from_file(tmp_path):
    np.savez(tmp_path / "data.npz", x=X, label=LABEL)
    return tn.data.open(tmp_path / "data.npz")


class Rows:
    """As a PyTorch data set."""

    def __init__(self, x=X, label=LABEL):
        self.x, self.label = x, label

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.label[i]


def test_fields_and_samples():
    data = tn.data.arrays(x=X, label=LABEL)

    assert len(data) == 20
    assert {field["name"]: field["shape"] for field in data.fields} == {"x": [6], "label": []}
    batch = data.batch([3, 1])
    np.testing.assert_array_equal(batch["x"], X[[3, 1]])
    np.testing.assert_array_equal(batch["label"], LABEL[[3, 1]])


def test_memory_is_shared():
    x = X.copy()
    data = tn.data.arrays(x=x)
    x[4] = 7
    assert (data[4]["x"] == 7).all()


def test_memory_with_gaps_is_copied():
    data = tn.data.arrays(x=X[::2, ::-1])
    np.testing.assert_array_equal(data.batch(range(10))["x"], X[::2, ::-1])


@pytest.mark.parametrize("kind", ["dictionary", "arrays", "samples", "mappings"])
def test_all_ways_train_to_the_same_bits(kind, model, tmp_path):
    data = {
        "dictionary": {"x": X, "label": LABEL},
        "arrays": tn.data.arrays(x=X, label=LABEL.tolist()),
        "samples": tn.data.samples(Rows()),
        "mappings": tn.data.samples([{"x": x, "label": y} for x, y in zip(X, LABEL)]),
    }[kind]
    options = {"epochs": 2, "batch": 8, "rate": 0.1, "backend": "reference"}

    mine = tn.train(model, data, **options).report["history"]
    theirs = tn.train(model, from_file(tmp_path), **options).report["history"]
    assert [epoch["loss"] for epoch in mine] == [epoch["loss"] for epoch in theirs]
    assert tn.evaluate(model, data)["value"] == tn.evaluate(model, from_file(tmp_path))["value"]


def test_arrays_calibrate(model):
    small = model.apply("quantizer.static", data={"x": X})
    assert "DequantizeLinear" in small.text()


def test_what_cannot_be_is_refused(model):
    with pytest.raises(tn.InvalidArgument, match="field label has 3 samples, field x has 20"):
        tn.data.arrays(x=X, label=LABEL[:3])
    with pytest.raises(tn.InvalidArgument, match="field x: expected an array whose first axis"):
        tn.data.arrays(x=np.float32(1))
    with pytest.raises(tn.InvalidArgument, match="at least one field"):
        tn.data.arrays()
    with pytest.raises(tn.InvalidArgument, match="option x: expected a tensor, got 'x.npy'"):
        tn.Dataset("datasets.arrays", x="x.npy")
    with pytest.raises(TypeError, match="option data: expected numbers, texts, lists, got Rows"):
        tn.train(model, Rows())


def test_samples_that_cannot_be_are_refused(model):
    with pytest.raises(tn.InvalidArgument, match="at least one sample"):
        tn.data.samples([])
    with pytest.raises(tn.InvalidArgument, match="expected 3 values for fields a, b, c, got 2"):
        tn.data.samples(Rows(), fields=("a", "b", "c"))
    uneven = [(X[0], 1), (X[1, :3], 1)]
    with pytest.raises(tn.InvalidArgument, match=r"sample 1: field x: expected float32\[6\]"):
        tn.train(model, tn.data.samples(uneven), batch=2)


def test_what_a_sample_raises_is_raised(model):
    class Broken(Rows):
        def __getitem__(self, i):
            if i == 13:
                raise KeyError("thirteen")
            return super().__getitem__(i)

    with pytest.raises((KeyError, tn.InvalidArgument), match="thirteen"):
        tn.train(model, tn.data.samples(Broken()), batch=4)
