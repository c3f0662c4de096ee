# SPDX-License-Identifier: Apache-2.0
"""Models that are not networks: linear models, decision trees and their features (ai.onnx.ml), on
both backends. ONNX's reference implementation is the judge, and NumPy where it has no answer."""

import numpy as np
import onnx
import pytest
import tenon as tn
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx_models import info

RANDOM = np.random.default_rng(5)
X = RANDOM.standard_normal((40, 3)).astype("f")


def model_of(op, inputs, n_outputs=1, version=3, **attributes):
    names = [f"y{i}" for i in range(n_outputs)]
    node = helper.make_node(op, list(inputs), names, domain="ai.onnx.ml", **attributes)
    types = {k: helper.np_dtype_to_tensor_dtype(v.dtype) for k, v in inputs.items()}
    given = [info(k, ["N", *v.shape[1:]], types[k]) for k, v in inputs.items()]
    outputs = [onnx.ValueInfoProto(name=name) for name in names]
    sets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", version)]
    graph = helper.make_graph([node], "g", given, outputs)
    return helper.make_model(graph, opset_imports=sets, ir_version=9)


def results(folder, model, inputs):
    path = folder / "model.onnx"
    onnx.save(model, path)
    loaded = tn.load(path)
    return [loaded.compile(backend=name).run(inputs) for name in ("reference", "onednn")]


def expect(made, wanted):
    for one in made:
        assert len(one) == len(wanted)
        for got, want in zip(one, wanted, strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def agrees(folder, op, inputs, n_outputs=1, version=3, **attributes):
    """With ONNX's reference implementation."""
    model = model_of(op, inputs, n_outputs, version, **attributes)
    wanted = ReferenceEvaluator(model).run(None, inputs)
    expect(results(folder, model, inputs), wanted)


def forest(rng, n_trees, depth, features, prefix, classes, modes=("BRANCH_LEQ",), missing=False):
    """Random trees of unequal branches, whose leaves have a weight for each class."""
    names = ["treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids"]
    nodes = {name: [] for name in [*names, "missing_value_tracks_true"]}
    weights = {name: [] for name in ["treeids", "nodeids", "ids", "weights"]}
    for tree in range(n_trees):
        n_nodes = 1
        level = [(0, depth)]
        while level:
            node, left = level.pop(0)
            is_leaf = left == 0 or (node > 0 and rng.random() < 0.2)
            children = (0, 0) if is_leaf else (n_nodes, n_nodes + 1)
            row = [tree, node, 0 if is_leaf else int(rng.integers(features))]
            row += [float(rng.standard_normal()), "LEAF" if is_leaf else str(rng.choice(modes))]
            row += [*children, int(missing and rng.integers(2))]
            for name, value in zip(nodes, row, strict=True):
                nodes[name].append(value)
            if is_leaf:
                for c in classes:
                    entry = [tree, node, c, float(rng.standard_normal())]
                    for name, value in zip(weights, entry, strict=True):
                        weights[name].append(value)
            else:
                n_nodes += 2
                level += [(children[0], left - 1), (children[1], left - 1)]
    out = {f"nodes_{name}": values for name, values in nodes.items()}
    return out | {f"{prefix}_{name}": values for name, values in weights.items()}


@pytest.mark.parametrize("how", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("base", [None, [0.5, -0.25]])
def test_a_forest_of_two_targets(tmp_path, how, base):
    trees = forest(np.random.default_rng(1), 5, 4, 3, "target", [0, 1])
    extra = {"base_values": base} if base else {}
    attributes = {"n_targets": 2, "aggregate_function": how, "post_transform": "NONE"}
    agrees(tmp_path, "TreeEnsembleRegressor", {"x": X}, **trees, **attributes, **extra)


@pytest.mark.parametrize("missing", [False, True])
def test_comparisons_and_missing_numbers_of_trees(tmp_path, missing):
    modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ"]
    modes += [] if missing else ["BRANCH_NEQ"]
    trees = forest(np.random.default_rng(2), 8, 4, 3, "target", [0], modes, missing)
    x = RANDOM.choice(np.float32(trees["nodes_values"]), (60, 3))  # equal ones too
    x[::3, 1] = np.nan if missing else 0
    agrees(tmp_path, "TreeEnsembleRegressor", {"x": x}, **trees, n_targets=1,
           aggregate_function="SUM", post_transform="NONE")  # fmt: skip


def test_a_missing_number_differs_from_every_limit(tmp_path):
    """As in ONNX Runtime, and in TreeEnsemble of ONNX's implementation."""
    trees = forest(np.random.default_rng(2), 1, 1, 1, "target", [0], ["BRANCH_NEQ"])
    trees["target_weights"] = [1.0, 2.0]
    x = {"x": np.float32([[np.nan], [trees["nodes_values"][0]], [9]])}
    model = model_of("TreeEnsembleRegressor", x, **trees, n_targets=1)
    expect(results(tmp_path, model, x), [np.float32([[1], [2], [1]])])


def test_limits_of_trees_in_double_precision(tmp_path):
    trees = forest(np.random.default_rng(3), 1, 1, 1, "target", [0])
    limit, weights = 0.1, np.array([1.0, 2.0])
    trees.pop("nodes_values"), trees.pop("target_weights")
    as_tensors = {
        "nodes_values_as_tensor": onnx.numpy_helper.from_array(np.full(3, limit)),
        "target_weights_as_tensor": onnx.numpy_helper.from_array(weights),
    }
    x = {"x": limit + np.array([[-1e-12], [0], [1e-12]])}
    model = model_of("TreeEnsembleRegressor", x, **trees, **as_tensors, n_targets=1)
    expect(results(tmp_path, model, x), [np.float32([[1], [1], [2]])])


def test_a_tree_of_one_leaf(tmp_path):
    trees = forest(np.random.default_rng(4), 2, 0, 3, "target", [0])
    agrees(tmp_path, "TreeEnsembleRegressor", {"x": X}, **trees, n_targets=1,
           aggregate_function="SUM", post_transform="NONE")  # fmt: skip


@pytest.mark.parametrize("after", ["NONE", "SOFTMAX", "LOGISTIC"])
@pytest.mark.parametrize("base", [None, [0.5, -0.25, 0.125]])
def test_a_classifier_of_three_classes(tmp_path, after, base):
    trees = forest(np.random.default_rng(6), 5, 3, 3, "class", [0, 1, 2])
    extra = {"base_values": base} if base else {}
    agrees(tmp_path, "TreeEnsembleClassifier", {"x": X}, 2, **trees, **extra,
           classlabels_int64s=[4, 7, 9], post_transform=after)  # fmt: skip


def test_two_classes_that_share_a_score(tmp_path):
    """Shares, as of random forests, and sums around 0, as of boosted trees."""
    trees = forest(np.random.default_rng(7), 5, 3, 3, "class", [0])
    labels = {"classlabels_int64s": [4, 7]}
    agrees(tmp_path, "TreeEnsembleClassifier", {"x": X}, 2, **trees, **labels,
           post_transform="LOGISTIC", base_values=[0.25])  # fmt: skip
    shares = trees | {"class_weights": np.abs(trees["class_weights"]) / 8}
    agrees(tmp_path, "TreeEnsembleClassifier", {"x": X}, 2, **shares, **labels,
           post_transform="NONE")  # fmt: skip
    # ONNX Runtime 1.32 gives -s and s, ONNX's implementation 1 - s and s.
    model = model_of("TreeEnsembleClassifier", {"x": X}, 2, **trees, **labels)
    _, scores = ReferenceEvaluator(model).run(None, {"x": X})
    s = scores[:, 1]
    wanted = [np.where(s > 0, 7, 4), np.stack([-s, s], 1)]
    expect(results(tmp_path, model, {"x": X}), wanted)


def test_trees_that_are_none_are_refused(tmp_path):
    trees = forest(np.random.default_rng(8), 1, 2, 3, "target", [0])
    made = {"n_targets": 1, "post_transform": "NONE", "aggregate_function": "SUM"}
    cycle = trees | {"nodes_falsenodeids": [0 for _ in trees["nodes_falsenodeids"]]}
    with pytest.raises(tn.TenonError, match="cycle"):
        results(tmp_path, model_of("TreeEnsembleRegressor", {"x": X}, **cycle, **made), {"x": X})
    far = trees | {"nodes_truenodeids": [99 for _ in trees["nodes_truenodeids"]]}
    with pytest.raises(tn.TenonError, match="tree 0 has no node 99"):
        results(tmp_path, model_of("TreeEnsembleRegressor", {"x": X}, **far, **made), {"x": X})
    wide = trees | {"nodes_featureids": [3 for _ in trees["nodes_featureids"]]}
    with pytest.raises(tn.TenonError, match=r"expected 0\.\.2, got 3"):
        results(tmp_path, model_of("TreeEnsembleRegressor", {"x": X}, **wide, **made), {"x": X})


def test_labels_that_are_texts_are_refused(tmp_path):
    attributes = {"coefficients": [1.0, 2, 3, 4, 5, 6], "intercepts": [0.0, 1]}
    model = model_of("LinearClassifier", {"x": X}, 2, **attributes, classlabels_strings=["a", "b"])
    with pytest.raises(tn.TenonError, match="labels are integers here"):
        results(tmp_path, model, {"x": X})


def test_maps_of_scores_are_refused_with_the_way_on(tmp_path):
    model = model_of("ZipMap", {"x": X}, classlabels_int64s=[0, 1, 2])
    scores = helper.make_map_type_proto(
        onnx.TensorProto.INT64, helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [])
    )
    model.graph.output[0].type.CopyFrom(helper.make_sequence_type_proto(scores))
    with pytest.raises(tn.Unimplemented, match="zipmap=False"):
        results(tmp_path, model, {"x": X})


@pytest.mark.parametrize("after", ["NONE", "SOFTMAX", "LOGISTIC"])
@pytest.mark.parametrize("kind", ["f4", "f8", "i8"])
def test_a_linear_classifier(tmp_path, after, kind):
    weights = RANDOM.standard_normal(9).astype("f").tolist()
    x = (4 * X).astype(kind)
    model = model_of("LinearClassifier", {"x": x}, 2, coefficients=weights, post_transform=after,
                     intercepts=[0.5, -1.0, 0.25], classlabels_ints=[4, 7, 9])  # fmt: skip
    wanted = ReferenceEvaluator(model).run(None, {"x": x})
    expect(results(tmp_path, model, {"x": x}), [wanted[0], wanted[1].astype("f")])


def test_a_linear_classifier_of_one_score(tmp_path):
    weights = {"coefficients": [1.0, -0.5, 0.25], "intercepts": [0.125]}
    agrees(tmp_path, "LinearClassifier", {"x": X}, 2, **weights, classlabels_ints=[4, 7],
           post_transform="LOGISTIC")  # fmt: skip
    # Without a transform ONNX Runtime gives 1 - s and s.
    model = model_of("LinearClassifier", {"x": X}, 2, **weights, classlabels_ints=[4, 7])
    s = X @ np.float32(weights["coefficients"]) + np.float32(0.125)
    expect(results(tmp_path, model, {"x": X}), [np.where(s > 0, 7, 4), np.stack([1 - s, s], 1)])


@pytest.mark.parametrize("targets", [1, 3])
def test_a_linear_regressor(tmp_path, targets):
    weights = RANDOM.standard_normal(3 * targets).astype("f").tolist()
    agrees(tmp_path, "LinearRegressor", {"x": X}, coefficients=weights, targets=targets,
           intercepts=[0.5, -1.0, 0.25][:targets])  # fmt: skip


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_rows_of_one_size(tmp_path, norm):
    x = X.copy()
    x[3] = 0
    agrees(tmp_path, "Normalizer", {"x": x}, norm=norm)


def test_missing_numbers_are_replaced(tmp_path):
    x = X.copy()
    x[::2, 1] = np.nan
    nan, each = float("nan"), [1.5, -2.0, 3.0]
    agrees(tmp_path, "Imputer", {"x": x}, imputed_value_floats=each, replaced_value_float=nan)
    x[::2, 1] = 7
    agrees(tmp_path, "Imputer", {"x": x}, imputed_value_floats=[4.0], replaced_value_float=7.0)
    whole = RANDOM.integers(0, 4, (9, 3))
    agrees(
        tmp_path, "Imputer", {"x": whole}, imputed_value_int64s=[8, 9, 10], replaced_value_int64=2
    )


def test_features_in_a_row(tmp_path):
    parts = {"a": X, "b": X[:, 0], "c": RANDOM.integers(0, 4, (40, 2))}
    wanted = np.concatenate([X, X[:, :1], parts["c"]], 1).astype("f")
    model = model_of("FeatureVectorizer", parts, inputdimensions=[3, 1, 2])
    expect(results(tmp_path, model, parts), [wanted])


def test_codes_of_labels(tmp_path):
    x = RANDOM.integers(-2, 6, (5, 7))
    keys = {"keys_int64s": [3, 0, 5]}
    agrees(tmp_path, "LabelEncoder", {"x": x}, **keys, values_int64s=[1, 2, 30], default_int64=-7)
    agrees(tmp_path, "LabelEncoder", {"x": x}, **keys, values_floats=[1.5, 2, 3], default_float=4.0)
    reals = {"x": np.float32([0.5, np.nan, 2, 7])}
    codes = {"keys_floats": [0.5, float("nan"), 2], "values_int64s": [10, 20, 30]}
    model = model_of("LabelEncoder", reals, **codes, default_int64=0)
    expect(results(tmp_path, model, reals), [np.array([10, 20, 30, 0])])  # as ONNX Runtime has it


def test_codes_of_labels_as_tensors(tmp_path):
    def tensor(*values):
        return onnx.numpy_helper.from_array(np.array(values, "f8"))

    x = {"x": np.array([[1.0, 2.5], [9, 1]])}
    model = model_of("LabelEncoder", x, version=4, keys_tensor=tensor(1, 2.5),
                     values_tensor=tensor(0.125, 4), default_tensor=tensor(-3))  # fmt: skip
    expect(results(tmp_path, model, x), [np.array([[0.125, 4], [-3, 0.125]])])


def test_categories_as_columns(tmp_path):
    x = RANDOM.integers(0, 4, (5, 2))
    agrees(tmp_path, "OneHotEncoder", {"x": x}, cats_int64s=[0, 1, 3], zeros=1)
    agrees(tmp_path, "OneHotEncoder", {"x": x}, cats_int64s=[0, 1, 2, 3], zeros=0)
    model = model_of("OneHotEncoder", {"x": x + 1}, cats_int64s=[0, 1, 2, 3], zeros=0)
    with pytest.raises(tn.OutOfRange, match="expected one of the categories"):
        results(tmp_path, model, {"x": x + 1})
