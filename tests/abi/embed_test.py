# SPDX-License-Identifier: Apache-2.0
"""libtenon from another language, by the generated cdef alone. TENON_BUILD names the build tree."""

import json
import os
from pathlib import Path

import cffi
import pytest

BUILD = Path(os.environ["TENON_BUILD"])


class Tenon:
    def __init__(self):
        self.ffi = cffi.FFI()
        self.ffi.cdef((BUILD / "share/tenon/tenon.cdef").read_text())
        self.c = self.ffi.dlopen(str(BUILD / "lib/libtenon.so"))
        self.keep = []

    def str(self, text: str):
        data = self.ffi.new("char[]", text.encode())
        self.keep.append(data)
        return self.ffi.new("tn_str*", {"data": data, "len": len(text.encode())})[0]

    def text(self, value) -> str:
        return bytes(self.ffi.buffer(value.data, value.len)).decode()

    def sink(self, into: list[bytes]):
        @self.ffi.callback("tn_status*(void*, const void*, uint64_t)")
        def write(_ctx, data, length):
            into.append(bytes(self.ffi.buffer(data, length)))
            return self.ffi.NULL

        self.keep.append(write)
        return self.ffi.new("tn_sink*", {"ctx": self.ffi.NULL, "write": write})

    def open(self, config: dict):
        out = self.ffi.new("tenon_session**")
        return self.c.tenon_open(self.str(json.dumps(config)), out), out[0]


@pytest.fixture
def tenon():
    return Tenon()


@pytest.fixture
def session(tenon):
    status, opened = tenon.open({"plugin_path": [str(BUILD / "lib/tenon/plugins")]})
    assert status == tenon.ffi.NULL
    yield opened
    tenon.c.tenon_close(opened)


def test_the_version_is_a_version(tenon):
    assert tenon.text(tenon.c.tenon_version()).count(".") == 2


def test_plugins_are_listed_as_json(tenon, session):
    parts: list[bytes] = []

    status = tenon.c.tenon_plugin_list(session, tenon.sink(parts))

    assert status == tenon.ffi.NULL
    assert "reference" in json.dumps(json.loads(b"".join(parts)))


def test_an_unknown_option_of_the_session_is_a_status_with_a_text(tenon):
    status, opened = tenon.open({"plugin_pth": []})

    assert opened == tenon.ffi.NULL
    assert tenon.c.tenon_status_code(status) == tenon.c.TN_INVALID_ARGUMENT
    assert "plugin_pth" in tenon.text(tenon.c.tenon_status_message(status))
    tenon.c.tenon_status_release(status)


def test_a_missing_model_is_a_status_that_names_the_file(tenon, session):
    graph = tenon.ffi.new("tn_graph**")
    nothing = tenon.ffi.NULL

    status = tenon.c.tenon_load(session, tenon.str("no/such.onnx"), tenon.str(""), nothing, graph)

    assert graph[0] == tenon.ffi.NULL
    assert "no/such.onnx" in tenon.text(tenon.c.tenon_status_message(status))
    tenon.c.tenon_status_release(status)


TWO_STEPS = """graph {
  input %x: f32[64, 64]
  %p: f32[64, 64] = MatMul(%x, %x) @product
  %y: f32[64, 64] = Tanh(%p) @tanh
  output y = %y
}
"""


def test_a_result_may_be_given_with_the_shape_that_was_asked_for(tenon, session):
    ffi, n = tenon.ffi, 64
    values, result = ffi.new("float[]", [1] * n * n), ffi.new("float[]", n * n)
    shape, graph, plan = ffi.new("int64_t[]", [n, n]), ffi.new("tn_graph**"), ffi.new("tn_plan**")

    @ffi.callback("tn_status*(void*, uint64_t, const DLTensor*, DLTensor*)")
    def get(_ctx, _i, proto, out):
        out[0] = proto[0]
        out.data = result
        return ffi.NULL

    host = tenon.c.tenon_host(session)

    def service(name: str):
        return ffi.cast(
            f"tn_host_{name}*", host.get_interface(host, tenon.str(f"tenon.host.{name}/1"))
        )

    graphs, evaluation = service("graph"), service("eval")
    assert graphs.parse(host.ctx, tenon.str(TWO_STEPS), graph) == ffi.NULL
    options = tenon.str('{"backend": "reference"}')
    assert tenon.c.tenon_compile(session, graph[0], options, plan) == ffi.NULL
    x = {"data": values, "ndim": 2, "dtype": (tenon.c.kDLFloat, 32, 1), "shape": shape}
    x = ffi.new("DLTensor*", x | {"device": (tenon.c.kDLCPU, 0)})
    outputs = ffi.new("tn_outputs*", {"get": get})

    status = tenon.c.tenon_run(plan[0], ffi.new("DLTensor*[]", [x]), 1, outputs, ffi.NULL)

    evaluation.release(plan[0])
    graphs.release(graph[0])
    assert status == ffi.NULL
    assert set(result) == {1.0}
