# SPDX-License-Identifier: Apache-2.0
"""Weights without their zeros: what is written, what onnx makes of it, and what is refused."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tenon_library import TenonError

F = TensorProto.FLOAT


def weight(zeros=0.9, shape=(200, 300), dtype=np.float32, seed=1):
    random = np.random.default_rng(seed)
    made = random.integers(1, 100, shape).astype(dtype)
    made[random.random(shape) < zeros] = 0
    return made


def product(w, element=F):
    """y = x @ w, whose weight is named w."""
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", element, [3, w.shape[0]])],
        [helper.make_tensor_value_info("y", element, [3, w.shape[1]])],
        [numpy_helper.from_array(w, "w")],
    )
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])


def dense(sparse):
    """What onnx says that a SparseTensorProto means."""
    made = np.zeros(sparse.dims, helper.tensor_dtype_to_np_dtype(sparse.values.data_type))
    indices = numpy_helper.to_array(sparse.indices)
    values = numpy_helper.to_array(sparse.values)
    if indices.ndim == 2:
        indices = np.ravel_multi_index(tuple(indices.T), tuple(sparse.dims))
    made.reshape(-1)[indices] = values
    return made


def sparse_of(w, flat=True, name="w", order=None):
    places = np.flatnonzero(w) if flat else np.argwhere(w)
    values = w[w != 0]
    if order is not None:
        places, values = places[order], values[order]
    made = onnx.SparseTensorProto()
    made.dims.extend(w.shape)
    made.values.CopyFrom(numpy_helper.from_array(values, name))
    made.indices.CopyFrom(numpy_helper.from_array(places.astype(np.int64)))
    return made


def model_of(sparse, w):
    model = product(w)
    del model.graph.initializer[:]
    model.graph.sparse_initializer.append(sparse)
    return model


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.int32])
def test_sparse_tensors_mean_the_same_to_onnx(tenon, tmp_path, dtype):
    w = weight(dtype=dtype)
    w.reshape(-1)[[0, -1]] = 7  # the ends count
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    onnx.save(product(w, element), tmp_path / "in.onnx")

    tenon.convert(tmp_path / "in.onnx", tmp_path / "out.onnx", '{"sparse": "tensors"}')
    written = onnx.load(tmp_path / "out.onnx")
    tenon.convert(tmp_path / "out.onnx", tmp_path / "back.onnx", "")

    kept = written.graph.sparse_initializer
    if w.itemsize == 1:  # eight bytes of index for each of one: no smaller
        assert not kept
    else:
        onnx.checker.check_sparse_tensor(kept[0])
        assert np.array_equal(dense(kept[0]), w)
    back = onnx.load(tmp_path / "back.onnx").graph.initializer[0]
    assert np.array_equal(numpy_helper.to_array(back), w)


def test_a_minus_zero_is_kept(tenon, tmp_path):
    w = weight()
    w[3, 4] = -0.0
    onnx.save(product(w), tmp_path / "in.onnx")
    for form in ("tensors", "gaps"):
        tenon.convert(tmp_path / "in.onnx", tmp_path / "out.onnx", f'{{"sparse": "{form}"}}')
    tenon.convert(tmp_path / "in.onnx", tmp_path / "out.onnx", '{"sparse": "tensors"}')
    tenon.convert(tmp_path / "out.onnx", tmp_path / "back.onnx", "")
    back = numpy_helper.to_array(onnx.load(tmp_path / "back.onnx").graph.initializer[0])
    assert np.signbit(back[3, 4])


@pytest.mark.parametrize("dtype, most", [(np.float32, 0.14), (np.int8, 0.215)])
def test_gaps_are_small_and_run_elsewhere(tenon, tmp_path, dtype, most):
    w = weight(shape=(400, 500), dtype=dtype)
    w[100:200] = 0  # gaps of more than 255
    model = product(w.astype("f")) if dtype == np.float32 else product(w, TensorProto.INT8)
    onnx.save(model, tmp_path / "in.onnx")

    tenon.convert(tmp_path / "in.onnx", tmp_path / "out.onnx", '{"sparse": "gaps"}')

    size = (tmp_path / "out.onnx").stat().st_size / (tmp_path / "in.onnx").stat().st_size
    assert size < most
    written = onnx.load(tmp_path / "out.onnx")
    if dtype != np.float32:  # ONNX's MatMul takes no int8
        return
    onnx.checker.check_model(written, full_check=True)
    x = np.random.default_rng(2).random((3, 400), np.float32)
    (y,) = ReferenceEvaluator(written).run(None, {"x": x})
    np.testing.assert_allclose(y, x @ w, rtol=1e-5)


@pytest.mark.parametrize("form", ["tensors", "gaps"])
def test_a_weight_that_is_not_trained_stays_one(rewrite, tenon, tmp_path, form):
    model = product(weight())
    model.graph.initializer[0].metadata_props.add(key="tenon.train", value="0")

    onnx.save(model, tmp_path / "dense.onnx")
    tenon.convert(tmp_path / "dense.onnx", tmp_path / "sparse.onnx", f'{{"sparse": "{form}"}}')
    written = rewrite(onnx.load(tmp_path / "sparse.onnx"))

    tensors = [*written.graph.initializer, *(s.values for s in written.graph.sparse_initializer)]
    kept = [t for t in tensors if t.data_type == F]
    assert [[(e.key, e.value) for e in t.metadata_props] for t in kept] == [[("tenon.train", "0")]]


@pytest.mark.parametrize("form", ["tensors", "gaps"])
def test_weights_without_many_zeros_stay(rewrite, form):
    written = rewrite(product(weight(zeros=0.1)), f'{{"sparse": "{form}"}}')

    assert len(written.graph.initializer) == 1
    assert not written.graph.sparse_initializer


def test_indices_may_be_one_for_each_axis(rewrite):
    w = weight()

    written = rewrite(model_of(sparse_of(w, flat=False), w))

    assert np.array_equal(numpy_helper.to_array(written.graph.initializer[0]), w)


def bad(change):
    def make():
        w = weight(shape=(20, 30))
        sparse = sparse_of(w)
        change(sparse, w)
        return model_of(sparse, w)

    return make


def replaced(change):
    """With indices that `change` made of the right ones."""

    def do(s, w):
        s.indices.CopyFrom(numpy_helper.from_array(change(np.flatnonzero(w).astype(np.int64))))

    return do


def swapped(places):
    places[[3, 4]] = places[[4, 3]]
    return places


def twice(places):
    places[4] = places[3]
    return places


def over(places):
    places[-1] = 600
    return places


def under(places):
    places[0] = -1
    return places


BAD = {
    "too few": (replaced(lambda p: p[:-1]), "indices: expected one of each of"),
    "of another type": (replaced(lambda p: p.astype(np.int32)), "indices: expected int64"),
    "not rising": (replaced(swapped), "index 4: expected .* .indices rise."),
    "twice": (replaced(twice), "index 4: expected .* .indices rise."),
    "behind the end": (replaced(over), "expected .* to 599 .*got 600"),
    "before the start": (replaced(under), "index 0: expected 0 to 599 .*got -1"),
    "of too many axes": (
        replaced(lambda p: np.stack([p] * 3, 1)),
        "indices: expected one of each of",
    ),
    "negative size": (lambda s, w: s.dims.__setitem__(0, -20), "at least 0, got -20"),
    "overflow": (lambda s, w: s.dims.extend([2**40, 2**40]), "size overflows"),
    "far too large": (lambda s, w: s.dims.__setitem__(0, 2**40), "elements for each value"),
    "values of two axes": (
        lambda s, w: s.values.CopyFrom(numpy_helper.from_array(w, "w")),
        "values: expected one axis, got 2",
    ),
    "short values": (lambda s, w: setattr(s.values, "raw_data", b"abc"), "raw_data at offset"),
    "an axis out of range": (
        lambda s, w: s.indices.CopyFrom(
            numpy_helper.from_array(np.argwhere(w).astype(np.int64) + [[20, 0]])
        ),
        "index 0, axis 0: expected 0 to 19",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_malformed_ones_are_refused_with_a_reason(tenon, tmp_path, name):
    change, why = BAD[name]
    onnx.save(bad(change)(), tmp_path / "in.onnx")

    with pytest.raises(TenonError, match=why):
        tenon.load(tmp_path / "in.onnx")


def test_a_name_of_two_initializers_is_refused(tenon, tmp_path):
    w = weight(shape=(20, 30))
    model = model_of(sparse_of(w), w)
    model.graph.initializer.append(numpy_helper.from_array(w, "w"))
    onnx.save(model, tmp_path / "in.onnx")

    with pytest.raises(TenonError, match="two values have the name w"):
        tenon.load(tmp_path / "in.onnx")
