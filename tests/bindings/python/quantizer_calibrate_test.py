# SPDX-License-Identifier: Apache-2.0
"""Ranges by several observers from one pass over the data, and passes that are given ranges."""

from pathlib import Path

import numpy as np
import pytest
import tenon
from onnx import helper
from onnx_models import constant, info, model_of
from quantizer_test import answers, mlp, ran, random_mlp, saved

OBSERVERS = {
    "all": {"observer": "minmax"},
    "most": {"observer": "percentile", "options": {"percentile": 99}},
    "least error": {"observer": "mse"},
    "least loss": {"observer": "entropy"},
    "over time": {"observer": "moving_average"},
}


def network(folder: Path) -> tenon.Model:
    return mlp(folder, random_mlp(31, [16, 32, 24, 8]))


def samples(count: int, seed: int = 32) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, 16)).astype("f")


def split(folder: Path, x: np.ndarray, first: int) -> tuple[str, str, str]:
    """Files of the first samples, of the others, of all."""
    files = []
    for name, some in (("first", x[:first]), ("rest", x[first:]), ("all", x)):
        np.savez(folder / f"{name}.npz", x=some)
        files.append(str(folder / f"{name}.npz"))
    return tuple(files)


def ranges_by(model: tenon.Model, data: str, one: dict, **options) -> dict:
    """What `static` by this observer alone stores its values in."""
    summary = model.apply(
        "quantizer.static",
        data=data,
        observer=one["observer"],
        observer_options=one.get("options", {}),
        **options,
    ).report
    return {row["name"]: (row["low"], row["high"]) for row in summary["values"]}


@pytest.mark.parametrize("activations", ["u8", "s8"])
def test_one_pass_gives_each_observer_what_its_own_would(tmp_path: Path, activations: str) -> None:
    model = network(tmp_path)
    first, rest, whole = split(tmp_path, samples(96), 64)
    summary = model.apply(
        "quantizer.calibrate", data=first, more=rest, observers=OBSERVERS, activations=activations
    ).report
    assert summary["calibration"]["samples"] == 96
    assert set(summary["ranges"]) == set(summary["with_more"]) == set(OBSERVERS)
    for name, one in OBSERVERS.items():
        for found, data in ((summary["ranges"], first), (summary["with_more"], whole)):
            wanted = ranges_by(model, data, one, activations=activations)
            for value, (low, high) in found[name].items():
                # a group's range holds 0 as well
                assert (min(low, 0), max(high, 0)) == wanted[value], (name, value)
    assert summary["ranges"]["all"] != summary["ranges"]["most"]


@pytest.mark.parametrize("name", ["nothing", "w0"])
def test_a_range_of_no_activation_is_refused(tmp_path: Path, name: str) -> None:
    model, data = mlp(tmp_path, random_mlp(5, [8, 4])), saved(tmp_path, np.ones((8, 8), "f"))
    for component in ("quantizer.static", "quantizer.qat", "quantizer.sensitivity"):
        with pytest.raises(tenon.TenonError, match=f"option ranges: '{name}': expected .* as 'x'"):
            model.apply(component, data=data, ranges={name: [0, 1]})


def test_a_range_of_what_is_never_stored_is_refused(tmp_path: Path) -> None:
    model, data = mlp(tmp_path, random_mlp(5, [8, 4])), saved(tmp_path, np.ones((8, 8), "f"))
    name = model.inspect()["outputs"][0]["name"]
    for component in ("quantizer.static", "quantizer.qat", "quantizer.sensitivity"):
        with pytest.raises(tenon.TenonError, match=f"ranges: '{name}': .* one that stays in float"):
            model.apply(component, data=data, ranges={name: [0, 1]})


def test_given_ranges_make_the_model_that_calibration_makes(tmp_path: Path) -> None:
    model, x = network(tmp_path), samples(64)
    data = saved(tmp_path, x)
    summary = model.apply("quantizer.calibrate", data=data, observers=OBSERVERS).report
    small = model.apply("quantizer.static", data=data, observer="mse")
    given = model.apply("quantizer.static", data=data, ranges=summary["ranges"]["least error"])
    assert given.text() == small.text()
    assert given.report["calibration"]["observer"] == "given"
    np.testing.assert_array_equal(answers(given, x), answers(small, x))
    layers = model.apply("quantizer.sensitivity", data=data, observer="mse").report["layers"]
    known = summary["ranges"]["least error"]
    assert model.apply("quantizer.sensitivity", data=data, ranges=known).report["layers"] == layers


def attention(folder: Path) -> tenon.Model:
    """Two heads of width 8; what they give is put together by a Transpose and a Reshape."""
    rng = np.random.default_rng(3)
    weights = {name: rng.standard_normal((16, 16)).astype("f") / 4 for name in "qkvo"}
    sizes = {"heads": [0, 0, 2, 8], "joined": [0, 0, 16]}
    constants = [constant(f"w{name}", w) for name, w in weights.items()]
    constants += [constant(name, np.array(size, np.int64)) for name, size in sizes.items()]
    nodes = []
    for name, order in (("q", (0, 2, 1, 3)), ("k", (0, 2, 3, 1)), ("v", (0, 2, 1, 3))):
        nodes += [
            helper.make_node("MatMul", ["x", f"w{name}"], [f"{name}0"]),
            helper.make_node("Reshape", [f"{name}0", "heads"], [f"{name}1"]),
            helper.make_node("Transpose", [f"{name}1"], [name], perm=order),
        ]
    nodes += [
        helper.make_node("MatMul", ["q", "k"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["shares"]),
        helper.make_node("MatMul", ["shares", "v"], ["context"]),
        helper.make_node("Transpose", ["context"], ["turn"], perm=(0, 2, 1, 3)),
        helper.make_node("Reshape", ["turn", "joined"], ["join"]),
        helper.make_node("MatMul", ["join", "wo"], ["y"]),
    ]
    return ran(folder, model_of(nodes, [info("x", ["N", 6, 16])], ["y"], constants))


def test_ranges_of_one_pass_serve_each_choice_of_products(tmp_path: Path) -> None:
    model = attention(tmp_path)
    x = np.random.default_rng(4).standard_normal((32, 6, 16)).astype("f")
    data = saved(tmp_path, x)
    most = {"most": OBSERVERS["most"]}
    found = model.apply("quantizer.calibrate", data=data, observers=most, any_products=True).report
    texts = set()
    for products in ("none", "scores", "all"):
        own = model.apply(
            "quantizer.static", data=data, products=products, observer="percentile",
            observer_options=OBSERVERS["most"]["options"],
        )  # fmt: skip
        given = model.apply(
            "quantizer.static", data=data, products=products, ranges=found["ranges"]["most"]
        )
        assert given.report["calibration"]["observer"] == "given", products
        assert given.text() == own.text()
        texts.add(own.text())
    assert len(texts) == 3


def test_values_without_a_given_range_are_observed(tmp_path: Path) -> None:
    model, data = network(tmp_path), saved(tmp_path, samples(64))
    own = ranges_by(model, data, {"observer": "minmax"})
    summary = model.apply(
        "quantizer.static", data=data, observer="minmax", ranges={"r0": [0, 1.5]}
    ).report
    for row in summary["values"]:
        wanted = (0, 1.5) if row["name"] == "r0" else own[row["name"]]
        assert (row["low"], row["high"]) == wanted
    assert summary["calibration"]["observer"] == "quantizer.observer.minmax"


def test_what_is_no_range_or_observer_is_said(tmp_path: Path) -> None:
    model, data = network(tmp_path), saved(tmp_path, samples(16))
    for bad in ([1, 0], [0], ["a", 1], 3, [0, None], [-1e300, 1e300]):
        with pytest.raises(tenon.TenonError, match="option ranges: r0: expected .low, high."):
            model.apply("quantizer.static", data=data, ranges={"r0": bad})
    for bad, why in (
        ({}, "option observers: expected at least one"),
        ({"a": "minmax"}, "option observers: a: expected"),
        ({"a": {"observer": "minmaxx"}}, "expected one of entropy, minmax"),
        ({"a": {"observer": "percentile", "options": {"percentil": 1}}}, "percentile"),
    ):
        with pytest.raises(tenon.TenonError, match=why):
            model.apply("quantizer.calibrate", data=data, observers=bad)


def test_numbers_that_are_none_are_refused_in_all_data(tmp_path: Path) -> None:
    model, x = network(tmp_path), samples(64)
    x[40, 3] = np.nan
    first, rest, _ = split(tmp_path, x, 32)
    with pytest.raises(tenon.TenonError, match="not finite in sample"):
        model.apply("quantizer.calibrate", data=first, more=rest, observers=OBSERVERS)
    summary = model.apply(
        "quantizer.calibrate", data=first, more=rest, observers=OBSERVERS, non_finite="ignore"
    ).report
    ends = np.array(list(summary["with_more"]["all"].values()))
    assert np.isfinite(ends).all()


def test_averages_of_two_momenta_share_no_record(tmp_path: Path) -> None:
    model, data = network(tmp_path), saved(tmp_path, samples(96))
    observers = {
        name: {"observer": "moving_average", "options": {"momentum": momentum}}
        for name, momentum in (("quick", 0.1), ("slow", 0.99))
    }
    found = model.apply("quantizer.calibrate", data=data, observers=observers).report["ranges"]
    assert found["quick"] != found["slow"]
    for name, one in observers.items():
        wanted = ranges_by(model, data, one)
        for value, (low, high) in found[name].items():
            assert (min(low, 0), max(high, 0)) == wanted[value], (name, value)


@pytest.mark.parametrize("more", [3, 5])
def test_more_data_than_fill_a_fixed_batch_are_left(tmp_path: Path, more: int) -> None:
    """The model takes 8 samples at once; 27 or 29 give three batches, and no fourth."""
    graph, weights = tenon.Graph(), random_mlp(31, [16, 32, 8])
    value = graph.add_input("x", "float32", [8, 16])
    for i, weight in enumerate(weights):
        value = graph.add_node(
            "MatMul", [value, graph.add_constant(weight, f"w{i}")], name=f"fc{i}"
        )
    graph.add_output("y", value)
    model = graph.build()
    first, rest, _ = split(tmp_path, samples(24 + more), 24)
    options = {"data": first, "more": rest, "observers": OBSERVERS}
    summary = model.apply("quantizer.calibrate", **options).report
    assert summary["calibration"]["samples"] == 24
