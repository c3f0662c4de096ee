# SPDX-License-Identifier: Apache-2.0
"""The networks' graphs give what was computed while they were built, and stay in a sane range."""

import numpy as np
import onnx
import pytest
from models import cnn, mobilenet_v2, resnet50

SMALL_RESNET = ((8, 1, 1), (16, 1, 2))
SMALL_MOBILENET = ((1, 16, 1, 1), (2, 16, 2, 2))


@pytest.mark.parametrize(
    "build, stages", [(resnet50.network, SMALL_RESNET), (mobilenet_v2.network, SMALL_MOBILENET)]
)
def test_graph_equals_the_run_that_built_it(run, build, stages):
    net = build(seed=1, size=32, stages=stages, n_classes=7)
    model = net.graph.model()

    got = run(model, {"image": net.values["image"]})[0]

    onnx.checker.check_model(model, full_check=True)
    np.testing.assert_allclose(got, net.values["logits"], atol=1e-4)


@pytest.mark.parametrize("build, n_convs", [(resnet50.network, 53), (mobilenet_v2.network, 52)])
def test_full_networks_have_their_layers_and_sane_activations(build, n_convs):
    net = build(seed=2, size=64)

    kinds = [node.op_type for node in net.graph.nodes]
    assert kinds.count("Conv") == n_convs
    for name, value in net.values.items():
        assert np.isfinite(value).all(), name
    assert 0.05 < net.values["logits"].std() < 10


def test_parameter_counts_are_the_published_ones():
    def count(net):
        statistics = ("running_mean", "running_var", "relu6.low", "relu6.high")
        parts = net.graph.initializers.items()
        return sum(array.size for name, array in parts if not name.endswith(statistics))

    assert count(resnet50.network(seed=3, size=32)) == 25_557_032
    assert count(mobilenet_v2.network(seed=3, size=32)) == 3_504_872


def test_the_same_seed_gives_the_same_weights():
    first = mobilenet_v2.network(seed=4, size=32, stages=SMALL_MOBILENET).graph.initializers
    again = mobilenet_v2.network(seed=4, size=32, stages=SMALL_MOBILENET).graph.initializers

    assert all(np.array_equal(first[name], again[name]) for name in first)


def test_convolution_of_a_case_by_hand():
    image = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
    weight = np.ones((1, 1, 3, 3), np.float32)

    assert cnn.conv2d(image, weight, stride=2, pad=1, groups=1).tolist() == [[[[8, 12], [20, 24]]]]
