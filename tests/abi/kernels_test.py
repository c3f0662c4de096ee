# SPDX-License-Identifier: Apache-2.0
"""tenon_op calls anybody's operator; a kernel that breaks its word is blamed by name, and one that
declines a node has it done in smaller operators."""

import json

import pytest
from calls import BUILD, Calls


class KernelCalls(Calls):
    def config(self) -> str:
        folders = [BUILD / "test_plugins/kernels", BUILD / "lib/tenon/plugins"]
        return json.dumps({"plugin_path": [str(folder) for folder in folders]})

    def op(self, name: str, values: list[float], attributes: str = "", fills: bool = True):
        """The refusal's message, or the values of the result."""
        ffi, results = self.ffi, []
        tensor = self.tensor()
        ffi.cast("float*", tensor.data)[0:4] = values

        @ffi.callback("tn_status*(void*, uint64_t, const DLTensor*, DLTensor*)")
        def get(_ctx, i, proto, out):
            if fills:
                results.append(self.tensor())
                out[0] = results[-1][0]
            return ffi.NULL

        outputs = self.new("tn_outputs*", {"get": get})
        given = self.new("DLTensor*[1]", [tensor])
        status = self.c.tenon_op(
            self.session, self.str(name), self.str(attributes), given, 1, 0, outputs, ffi.NULL
        )
        if status != ffi.NULL:
            return self.message(status)
        return list(ffi.cast("float*", results[-1].data)[0:4])


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    return KernelCalls(tmp_path_factory.mktemp("kernels"))


def test_an_operator_of_onnx_and_one_of_a_third_party_are_called(calls):
    assert calls.op("Relu", [-1, 2, -3, 4]) == [0, 2, 0, 4]
    assert calls.op("test.kernels.Counted", [0] * 4) == [1] * 4


def test_attributes_are_json(calls):
    assert calls.op("LeakyRelu", [-2, 2, -4, 4], '{"alpha": 0.5}') == [-1, 2, -2, 4]


def test_an_operator_that_no_plugin_brings_is_reported_with_the_nearest(calls):
    assert "did you mean 'test.kernels.Counted'" in calls.op("test.kernels.Countd", [0] * 4)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("WrongShape", ["WrongShape", "inferred float32[4]", "float32[1]"]),
        ("WrongType", ["WrongType", "inferred float32[4]", "float64[4]"]),
        ("NoOutput", ["NoOutput", "did not make it"]),
        ("TwoOutputs", ["TwoOutputs", "more outputs than the node: expected 2 or more, got 1"]),
    ],
)
def test_a_kernel_that_breaks_its_word_is_blamed_by_name(calls, name, words):
    report = calls.op(f"test.kernels.{name}", [1, 2, 3, 4])
    assert all(word in report for word in words), report


def test_a_kernel_that_declines_is_done_in_pieces(calls):
    assert calls.op("test.kernels.NotThis", [1, 2, 3, 4]) == [2, 4, 6, 8]


def test_rows_keep_state_between_calls(calls):
    before = calls.op("test.kernels.Counted", [0] * 4)[0]
    assert calls.op("test.kernels.Counted", [0] * 4) == [before + 1] * 4


def test_outputs_that_are_not_filled_in_are_reported(calls):
    assert "outputs" in calls.op("Relu", [1, 2, 3, 4], fills=False)
