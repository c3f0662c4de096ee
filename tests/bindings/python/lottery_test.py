# SPDX-License-Identifier: Apache-2.0
"""Iterative magnitude pruning with rewinding to step k (Frankle et al. 2020), the whole loop."""

import json
import struct

import numpy as np
import pytest
import tenon

N, WIDE, HIDDEN, CLASSES, BATCH = 240, 8, 24, 4, 24
K, ROUNDS, SHARE = 7, 3, 0.3  # step 7 lies within an epoch of 10
WEIGHTS = ("w0", "w1")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((N, WIDE)).astype("f")
    label = (x[:, :CLASSES] * x[:, CLASSES:]).argmax(1)
    path = tmp_path_factory.mktemp("lottery") / "train.npz"
    np.savez(path, x=x, label=label)
    return tenon.data.npz(path)


def network() -> tenon.Model:
    rng = np.random.default_rng(1)
    graph = tenon.Graph()
    h = graph.add_input("x", "float32", ["batch", WIDE])
    for i, (a, b) in enumerate([(WIDE, HIDDEN), (HIDDEN, CLASSES)]):
        w = graph.add_constant((rng.standard_normal((a, b)) / np.sqrt(a)).astype("f"), f"w{i}")
        bias = graph.add_constant(np.full(b, 0.01, "f"), f"b{i}")
        h = graph.add_node("Gemm", [h, w, bias], name=f"fc{i}")
        if i == 0:
            h = graph.add_node("Relu", [h], name="relu")
    graph.add_output("logits", h)
    return graph.build()


def fit(model, data, **options):
    rate = tenon.schedule.cosine(base=2e-2)
    given = dict(batch=BATCH, epochs=4, seed=5, optimizer=tenon.optim.adamw(lr=rate)) | options
    return tenon.train(model, data, **given)


def pruned(model):
    return model.apply(
        "pruner.unstructured", sparsity=SHARE, scope="global", relative=True, apply="nodes"
    )


def states(path) -> dict[str, np.ndarray]:
    types = {"F32": "<f4", "I64": "<i8", "I32": "<i4"}
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    header.pop("__metadata__")
    out = {}
    for name, entry in header.items():
        begin, end = (8 + length + at for at in entry["data_offsets"])
        array = np.frombuffer(content[begin:end], types[entry["dtype"]])
        out[name] = array.reshape(entry["shape"])
    return out


def masks(model) -> dict[str, np.ndarray]:
    held = model.constants()
    return {name: np.asarray(held[f"{name}_mask"]).astype(bool) for name in WEIGHTS}


def search(data, folder):
    """The trained models, dense first, and their runs."""
    models, runs = [fit(network(), data, run=folder / "0", keep_steps=[K])], [folder / "0"]
    at_k = folder / "0" / f"step_{K}.safetensors"
    for i in range(1, ROUNDS + 1):
        runs.append(folder / str(i))
        ticket = pruned(models[-1])
        models.append(fit(ticket, data, run=runs[-1], rewind=at_k, keep_steps=[K]))
    return models, runs


@pytest.fixture(scope="module")
def found(data, tmp_path_factory):
    return search(data, tmp_path_factory.mktemp("runs"))


def test_each_round_prunes_its_share_of_what_is_left(found):
    left = total = WIDE * HIDDEN + HIDDEN * CLASSES
    for model in found[0][1:]:
        left -= int(left * SHARE)
        assert sum(int(mask.sum()) for mask in masks(model).values()) == left
    assert left / total == pytest.approx((1 - SHARE) ** ROUNDS, abs=0.01)


def test_what_is_pruned_stays_pruned(found):
    before = {name: True for name in WEIGHTS}
    for model in found[0][1:]:
        now = masks(model)
        for name in WEIGHTS:
            assert not (now[name] & ~np.asarray(before[name])).any()
        before = now


def test_the_smallest_of_the_trained_weights_go(found):
    models = found[0]
    for trained, ticket in zip(models, models[1:]):
        weights, keep = trained.constants(), masks(ticket)
        had = masks(trained) if trained is not models[0] else {name: True for name in WEIGHTS}
        size = {name: np.abs(np.asarray(weights[name])) for name in WEIGHTS}
        gone = np.concatenate([size[n][had[n] & ~keep[n]] for n in WEIGHTS])
        stays = np.concatenate([size[n][keep[n]] for n in WEIGHTS])
        assert gone.max() <= stays.min()


def test_each_round_begins_with_all_that_step_k_had(found):
    """Weights, what AdamW remembers, its count: bit by bit."""
    runs = found[1]
    wanted = states(runs[0] / f"step_{K}.safetensors")
    assert {"w0", "w0/exp_avg", "w0/exp_avg_sq", "b1", "adamw/step"} <= set(wanted)
    assert int(wanted["adamw/step"].reshape(-1)[0]) == K
    for run in runs[1:]:
        got = states(run / f"step_{K}.safetensors")
        assert got.keys() == wanted.keys()
        for name in wanted:
            np.testing.assert_array_equal(got[name], wanted[name], name)


def test_pruned_weights_have_no_part_in_what_comes_out(found, data):
    ticket = found[0][-1]
    zeros = ticket.apply("pruner.unstructured", sparsity=0.0, relative=True, apply="zero")
    keep = masks(ticket)
    for name in WEIGHTS:
        assert (np.asarray(zeros.constants()[name])[~keep[name]] == 0).all()
    x = np.random.default_rng(2).standard_normal((5, WIDE)).astype("f")
    np.testing.assert_allclose(
        zeros.compile()(x=x)["logits"], ticket.compile()(x=x)["logits"], atol=1e-5
    )


def test_the_loop_repeats_bit_by_bit(found, data, tmp_path):
    again, runs = search(data, tmp_path)
    for a, b, run, other in zip(found[0], again, found[1], runs):
        for name, expected in a.constants().items():
            np.testing.assert_array_equal(b.constants()[name], expected, name)
        last = states(other / "checkpoint.safetensors")
        for name, expected in states(run / "checkpoint.safetensors").items():
            np.testing.assert_array_equal(last[name], expected, name)


def test_without_masks_rewinding_repeats_the_first_run(found, data):
    """The order of samples, the schedule and all states are those of step k."""
    models, runs = found
    again = fit(network(), data, rewind=runs[0] / f"step_{K}.safetensors")
    for name, expected in models[0].constants().items():
        np.testing.assert_array_equal(again.constants()[name], expected, name)


def test_pruner_rewind_gives_weights_and_the_optimizer_starts_anew(found, data, tmp_path):
    """The other form: the loop's first run ends at step k, and later ones begin at step 0."""
    models, runs = found
    at_k = fit(network(), data, callbacks=[tenon.callback(step=lambda point: point["step"] == K)])
    wanted = states(runs[0] / f"step_{K}.safetensors")
    np.testing.assert_array_equal(at_k.constants()["w0"], wanted["w0"])

    ticket = pruned(models[0]).apply("pruner.rewind", to=at_k, apply="nodes")
    fit(ticket, data, run=tmp_path / "run", keep_steps=[0])
    begun = states(tmp_path / "run" / "step_0.safetensors")
    for name in ("w0", "w1", "b0", "b1"):
        np.testing.assert_array_equal(begun[name], wanted[name], name)
    for name in set(begun) - {"w0", "w1", "b0", "b1"}:
        assert not begun[name].any(), name


def test_what_cannot_be_rewound_is_reported(found, data, tmp_path):
    models, runs = found
    at_k = runs[0] / f"step_{K}.safetensors"
    zeros = models[0].apply("pruner.unstructured", sparsity=SHARE)
    with pytest.raises(
        tenon.InvalidArgument, match="option rewind: .* w0 has zeros .* apply = nod"
    ):
        fit(zeros, data, rewind=at_k)
    with pytest.raises(tenon.InvalidArgument, match="option rewind: .*option batch: the run began"):
        fit(pruned(models[0]), data, rewind=at_k, batch=8)
    with pytest.raises(tenon.InvalidArgument, match="option rewind: .*option optimizer"):
        fit(pruned(models[0]), data, rewind=at_k, optimizer=tenon.optim.sgd(lr=0.1))
    with pytest.raises(tenon.TenonError, match="no_such.safetensors"):
        fit(pruned(models[0]), data, rewind=tmp_path / "no_such.safetensors")
    with pytest.raises(tenon.InvalidArgument, match="option keep_steps: expected run beside it"):
        fit(network(), data, keep_steps=[K])


def test_regrown_weights_go_back_to_the_earlier_state_too():
    first = network()
    grown = pruned(first).apply("pruner.regrow", by="random")
    assert any((masks(grown)[w] != masks(pruned(first))[w]).any() for w in WEIGHTS)

    back = grown.apply("pruner.rewind", to=first, apply="nodes")

    for weight in WEIGHTS:
        assert (masks(back)[weight] == masks(grown)[weight]).all()
        assert (np.asarray(back.constants()[weight]) == first.constants()[weight]).all()
