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


@pytest.mark.parametrize("size", [0, -1])
def test_batches_without_samples_are_refused(size):
    with pytest.raises(ValueError, match="batches: expected a size of at least 1"):
        list(tn.data.arrays(x=X, label=LABEL).batches(size))


def test_memory_is_shared():
    x = X.copy()
    data = tn.data.arrays(x=x)
    x[4] = 7
    assert (data[4]["x"] == 7).all()


def test_memory_with_gaps_is_copied():
    data = tn.data.arrays(x=X[::2, ::-1])
    np.testing.assert_array_equal(data.batch(range(10))["x"], X[::2, ::-1])


@pytest.mark.parametrize("kind", ["dictionary", "lists", "arrays", "samples", "mappings"])
def test_all_ways_train_to_the_same_bits(kind, model, tmp_path):
    data = {
        "dictionary": {"x": X, "label": LABEL},
        "lists": {"x": X, "label": LABEL.tolist()},
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
    with pytest.raises(tn.InvalidArgument, match="field label: expected an array or a list of num"):
        tn.train(model, {"x": X, "label": ["a"] * 20})
    with pytest.raises(tn.InvalidArgument, match="field label: expected an array or a list of num"):
        tn.data.arrays(x=X, label=[[0], [1, 2]])
    says = (
        "option data: expected numbers, texts, lists, got Rows; make it a data set by tn.data.sam"
    )
    with pytest.raises(TypeError, match=says):
        tn.train(model, Rows())


def test_dictionaries_of_numbers_and_lists_are_no_data_sets(model):
    with pytest.raises(tn.InvalidArgument, match="layers: nothing"):
        model.apply("pruner.structured", layers={"nothing": np.float32(0.5)})
    with pytest.raises(tn.InvalidArgument, match="option data: .*got a table of options: datasets"):
        tn.train(model, {"x": [[0.5] * 6], "label": [1]})


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

    data = tn.data.samples(Broken())
    with pytest.raises(tn.InvalidArgument, match="KeyError: 'thirteen'"):
        tn.train(model, data, batch=4)  # on the thread that prepares batches
    with pytest.raises(KeyError, match="thirteen"):
        tn.evaluate(model, data)
    with pytest.raises(KeyError, match="thirteen"):
        data.batch([13])


def test_mappings_are_read_by_their_keys():
    data = tn.data.samples([{"a": 1, "b": 2}, {"b": 20, "a": 10}])
    batch = data.batch([0, 1])
    assert {name: values.tolist() for name, values in batch.items()} == {"a": [1, 10], "b": [2, 20]}


def test_fields_take_some_of_the_keys():
    data = tn.data.samples([{"a": 1, "b": 2}, {"c": 5, "a": 10}], fields=("a",))
    assert [field["name"] for field in data.fields] == ["a"]
    assert data.batch([0, 1])["a"].tolist() == [1, 10]


def test_a_lone_array_is_one_field():
    data = tn.data.samples(X)
    np.testing.assert_array_equal(data.batch([2, 0])["x"], X[[2, 0]])
    assert [field["name"] for field in tn.data.samples(X, fields="image").fields] == ["image"]


@pytest.mark.parametrize(
    ("second", "says"),
    [
        ({"a": 1}, "sample 1: expected the keys a, b as sample 0 has, got a;"),
        ({"a": 1, "c": 2}, "sample 1: expected the keys a, b as sample 0 has, got a, c;"),
        ({"b": 1, "a": 2, "c": 3}, "sample 1: expected the keys a, b as sample 0 has, got b, a, c"),
        (
            (1, 2),
            "sample 1: expected a dictionary with the keys a, b as sample 0 is one, got tuple",
        ),
    ],
)
def test_samples_with_other_keys_are_refused(second, says):
    data = tn.data.samples([{"a": 1, "b": 2}, second])
    with pytest.raises(tn.InvalidArgument, match=says):
        data.batch([0, 1])


def test_samples_that_change_their_kind_or_lack_a_field_are_refused():
    with pytest.raises(tn.InvalidArgument, match="sample 0: expected the keys a, z, got a, b;"):
        tn.data.samples([{"a": 1, "b": 2}], fields=("a", "z"))
    data = tn.data.samples([(1, 2), {"x": 1, "label": 2}])
    with pytest.raises(tn.InvalidArgument, match="sample 1: expected values without names"):
        data.batch([1])


def test_the_nearest_name_is_said(model):
    with pytest.raises(tn.NotFound, match=r"got 'acuracy' \(did you mean 'accuracy'\?\)"):
        tn.evaluate(model, {"x": X, "label": LABEL}, "acuracy")
    with pytest.raises(tn.NotFound, match="got 'qqqqqq'$"):
        tn.evaluate(model, {"x": X, "label": LABEL}, "qqqqqq")
