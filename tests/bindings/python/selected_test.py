# SPDX-License-Identifier: Apache-2.0
"""Options `only` and `skip` mean the same in every pass that changes layers."""

from pathlib import Path

import numpy as np
import pytest
import tenon

WIDTHS = (8, 32, 64, 4)  # first 8 x 32 = 256 weights, second 2048, third 256
NAMES = ("first", "second", "third")


def model() -> tenon.Model:
    """x [N, 8] -> first -> Relu -> second -> Relu -> third, of low rank and with noise."""
    rng = np.random.default_rng(0)
    graph = tenon.Graph()
    value = graph.add_input("x", "float32", ["N", WIDTHS[0]])
    for name, n_in, n_out in zip(NAMES, WIDTHS, WIDTHS[1:]):
        thin = rng.standard_normal((n_in, 2)) @ rng.standard_normal((2, n_out))
        weight = (thin + 0.01 * rng.standard_normal((n_in, n_out))).astype("f")
        weight /= np.sqrt(n_in)
        op = "Gemm" if name == "third" else "MatMul"
        value = graph.add_node(op, [value, graph.add_constant(weight, f"{name}.w")], name=name)
        if name != "third":
            value = graph.add_node("Relu", [value], name=f"{name}_relu")
    graph.add_output("y", value)
    return graph.build()


def passes(folder: Path) -> dict[str, dict]:
    x = np.random.default_rng(1).standard_normal((64, WIDTHS[0])).astype("f")
    np.savez(folder / "x.npz", x=x)
    data = {"data": str(folder / "x.npz")}
    return {
        "pruner.structured": {"ratio": 0.5},
        "pruner.unstructured": {"sparsity": 0.5},
        "decomposer.svd": {"rank": 2, "max_ratio": 9, "measure": False},
        "quantizer.weights": {},
        "quantizer.dynamic": {},
        "quantizer.static": data,
        "quantizer.sensitivity": data,
        "quantizer.smooth": data,
        "recovery.refit": data,
    }


def changed(before: tenon.Model, after: tenon.Model) -> set[str]:
    """Layers whose weight is no longer what it was."""
    then = after.constants()
    return {
        name
        for name in NAMES
        if f"{name}.w" not in then
        or np.asarray(then[f"{name}.w"]).shape != before.constants()[f"{name}.w"].shape
        or not np.array_equal(then[f"{name}.w"], before.constants()[f"{name}.w"])
    }


def test_every_pass_that_leaves_nodes_alone_says_so_alike():
    """Whoever has one of them has both, with the description of the SDK."""
    found = set()
    for one in tenon.components("tenon.pass/1"):
        options = (one.get("schema") or {}).get("properties", {})
        if not {"only", "skip"} & options.keys() or one["id"].startswith("fusion."):
            continue
        found.add(one["id"])
        assert "sizes, such as size>=4096" in options["only"]["description"], one["id"]
        assert options["skip"]["description"] == "nodes to leave alone: patterns likewise"
    for plugin in ("pruner", "decomposer", "quantizer", "recovery"):
        assert any(name.startswith(plugin) for name in found)
    assert {"decomposer.tucker2", "decomposer.cp", "pruner.depth", "quantizer.smooth"} <= found


@pytest.mark.parametrize("option", ["only", "skip"])
def test_a_pattern_that_means_nothing_is_refused(tmp_path, option):
    for name, options in passes(tmp_path).items():
        with pytest.raises(tenon.TenonError, match=f"option {option}: 'fist' matches no node"):
            if name == "recovery.refit":
                model().apply("pruner.structured").apply(name, **options, **{option: "fist"})
            else:
                model().apply(name, **options, **{option: "fist"})


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [("second", "second"), ("s?c*", "second"), ("Gemm", "third"), ("size>=2048", "second")],
)
def test_names_operators_and_sizes_mean_layers(pattern, meant):
    before = model()
    for name, options in {
        "pruner.unstructured": {"sparsity": 0.5},
        "decomposer.svd": {"rank": 1, "max_ratio": 9, "max_error": 9, "measure": False},
        "quantizer.weights": {},
    }.items():
        assert changed(before, before.apply(name, only=pattern, **options)) == {meant}, name
        left = changed(before, before.apply(name, skip=pattern, **options))
        assert left == set(NAMES) - {meant}, name


def test_pruning_only_one_layer_takes_what_reads_it_along():
    before = model()
    after = before.apply("pruner.structured", ratio=0.5, only="first")
    shapes = {name: list(after.constants()[f"{name}.w"].shape) for name in NAMES}
    assert shapes == {"first": [8, 16], "second": [16, 64], "third": [64, 4]}
    assert after.report["left"] == [{"layer": "second", "why": "not in the list of option only"}]


@pytest.mark.parametrize(
    ("bound", "meant"),
    [
        ("size<256", set()),
        ("size<=256", {"first", "third"}),
        ("size>256", {"second"}),
        ("size>=256", set(NAMES)),
        ("size=256", None),
        ("size>many", None),
    ],
)
def test_sizes_compare_as_they_say(bound, meant):
    before = model()
    if meant:
        assert changed(before, before.apply("pruner.unstructured", only=bound)) == meant
        return
    why = "matches no node" if meant is None else "nothing to prune"  # Relu reads no constant
    with pytest.raises(tenon.TenonError, match=why):
        before.apply("pruner.unstructured", only=bound)
