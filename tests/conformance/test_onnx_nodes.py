# SPDX-License-Identifier: Apache-2.0
"""ONNX's own single-operator cases on each backend, against the list of expected failures."""

import expected
import pytest
import runner
import tenon.onnx_backend

NEWEST_OF_PEERS = 26  # ONNX Runtime 1.31 reads no later opset


@pytest.fixture(scope="module")
def cases():
    return runner.cases()


# What each device runs without a node on another one, at least.
ALONE = {"reference": 1800, "onednn": 1600}


@pytest.mark.parametrize("device", expected.DEVICES)
def test_reality_is_as_the_list_says(device, cases, capsys):
    if not tenon.onnx_backend.supports_device(device):
        pytest.skip(f"{device} is not built")

    outcomes = runner.run_all(cases, device)

    passed = [case for case in cases if outcomes[case.name].passed]
    early = [case for case in passed if runner.opset(case) <= NEWEST_OF_PEERS]
    alone = [case for case in passed if outcomes[case.name].fallback == 0]
    with capsys.disabled():
        print(
            f"\nonnx node cases on {device}: {len(passed)} of {len(cases)} passed, "
            f"{len(early)} of opset {NEWEST_OF_PEERS} or lower, {len(alone)} without fallback"
        )
    assert len(alone) >= ALONE[device]
    wrong = expected.disagreements(expected.read(expected.LIST.read_text()), device, outcomes)
    assert not wrong, "".join(f"\n  {name}: {why}" for name, why in sorted(wrong.items()))


def test_a_crash_costs_one_case(monkeypatch):
    class Case:
        def __init__(self, name):
            self.name = name

    def run_case(case, device):
        if case.name == "b":
            raise SystemExit(3)
        return runner.Outcome(True)

    monkeypatch.setattr(runner, "run_case", run_case)

    outcomes = runner.run_all([Case("a"), Case("b"), Case("c")], "reference")

    assert [outcomes[name].passed for name in "abc"] == [True, False, True]
    assert "crashed" in outcomes["b"].why


def test_both_kinds_of_disagreement_are_found():
    listed = expected.read("all test_a: why\nreference op/Foo: no row yet\n")
    outcomes = {
        "test_a": runner.Outcome(True),
        "test_b": runner.Outcome(False, "off by one"),
        "test_c": runner.Outcome(False, "no loaded plugin brings a row for Foo"),
    }

    wrong = expected.disagreements(listed, "reference", outcomes)

    assert set(wrong) == {"test_a", "test_b"}
    assert "off by one" in wrong["test_b"]


@pytest.mark.parametrize("line", ["all test_a", "all test_a:", "gpu test_a: why", "test_a: why"])
def test_a_line_without_device_or_reason_is_refused(line):
    with pytest.raises(ValueError, match="line 1"):
        expected.read(line)
