# SPDX-License-Identifier: Apache-2.0
"""`scripts/quantized.lua` on made digits: training brings back what few bits lose."""

import made_digits
import onnx
import pytest


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("quantized")
    settings = {"networks": "lenet", "epochs": 4, "keep": made, "out": made}
    made_digits.run("scripts/reference.lua", made, timeout=600, **settings)
    return made


def run(folder, **settings):
    given = {"network": "lenet", "out": folder, "kept": folder, "rate": 1e-3, **settings}
    return made_digits.run("scripts/quantized.lua", folder, timeout=600, **given)


def test_few_bits_are_trained_and_it_goes_on_where_it_was(folder):
    text, result = run(folder, bits=2, scales="all", epochs=4)
    float_row, calibrated, trained = result["rows"]
    assert float_row["held out %"] > 90
    assert calibrated["held out %"] < float_row["held out %"] - 10
    assert trained["held out %"] > calibrated["held out %"] + 5
    assert len(trained["after each epoch"].split()) == 4
    assert all(str(row["weights"]) in text for row in result["rows"])
    model = onnx.load(folder / "quantized_lenet_2_all.onnx")
    assert {node.op_type for node in model.graph.node} >= {"QuantizeLinear", "DequantizeLinear"}
    assert not any(one.name.endswith("_step") for one in model.graph.initializer)
    assert run(folder, bits=2, scales="all", epochs=4)[1] == result


@pytest.mark.parametrize("scales", ["learned", "largest"])
def test_eight_bits_lose_little_by_any_scales(folder, scales):
    _, result = run(folder, bits=8, scales=scales, epochs=1)
    float_row, _, trained = result["rows"]
    assert trained["held out %"] > float_row["held out %"] - 2
