# SPDX-License-Identifier: Apache-2.0
"""`scripts/digits.lua` on made digits, with few epochs: it learns, and says so."""

import made_digits
import pytest


@pytest.mark.parametrize("network", ["mlp", "cnn"])
def test_digits_are_learned(tmp_path, network):
    settings = {"network": network, "seeds": 2, "epochs": 3}
    _, result = made_digits.run("scripts/digits.lua", tmp_path, timeout=300, **settings)
    assert result["network"] == network
    assert result["accuracy"] >= 0.8
    assert 0 <= result["spread"] < 0.1
