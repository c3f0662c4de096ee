# SPDX-License-Identifier: Apache-2.0
"""`scripts/digits.lua` on made digits, with few epochs: it learns, and says so."""

import json
import os
import subprocess

import pytest
from chain_test import ROOT, write_digits


@pytest.mark.parametrize("network", ["mlp", "cnn"])
def test_digits_are_learned(tmp_path, network):
    write_digits(tmp_path / "mnist_train.npz", 1, 1280)
    write_digits(tmp_path / "mnist_test.npz", 2, 200)
    settings = {"models": tmp_path, "network": network, "seeds": 2, "epochs": 3}
    given = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    command = [os.environ["TENON_BIN"], "run", str(ROOT / "scripts/digits.lua"), "--json", *given]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads("{" + done.stdout.partition("{")[2])
    assert result["network"] == network
    assert result["accuracy"] >= 0.8
    assert 0 <= result["spread"] < 0.1
