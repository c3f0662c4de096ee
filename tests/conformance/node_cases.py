# SPDX-License-Identifier: Apache-2.0
"""ONNX's own single-operator cases through libtenon's C API.

    python3 tests/conformance/node_cases.py BUILD [--only REGEX] [--backend ID] [--list]

Prints how many cases pass per operator, and why the others fail. Exit code 1 when a case fails that
expected_failures.txt beside this file does not name, or when one that it names passes. Cases of
operators that no plugin brings, and of sequences and texts, are counted as skipped.
"""

import argparse
import collections
import json
import re
import sys
import tempfile
from pathlib import Path

import cffi
import expected
import ml_dtypes
import numpy as np
import onnx
import onnx.numpy_helper
from onnx.backend.test.case.node import collect_testcases

HERE = Path(__file__).parent
# DLPack codes and bits of what NumPy (with ml_dtypes) calls them.
DTYPES = {
    (6, 8): np.bool_, (0, 8): np.int8, (0, 16): np.int16, (0, 32): np.int32, (0, 64): np.int64,
    (1, 8): np.uint8, (1, 16): np.uint16, (1, 32): np.uint32, (1, 64): np.uint64,
    (2, 16): np.float16, (2, 32): np.float32, (2, 64): np.float64, (4, 16): ml_dtypes.bfloat16,
    (10, 8): ml_dtypes.float8_e4m3fn, (11, 8): ml_dtypes.float8_e4m3fnuz,
    (12, 8): ml_dtypes.float8_e5m2, (13, 8): ml_dtypes.float8_e5m2fnuz,
    (14, 8): ml_dtypes.float8_e8m0fnu, (17, 4): ml_dtypes.float4_e2m1fn,
    (0, 4): ml_dtypes.int4, (1, 4): ml_dtypes.uint4,
    (0, 2): ml_dtypes.int2, (1, 2): ml_dtypes.uint2,
}  # fmt: skip
CODES = {np.dtype(kind): code for code, kind in DTYPES.items()}


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


def pack(array: np.ndarray, bits: int) -> np.ndarray:
    """Elements as bytes; those under 8 bits packed, first element in the low bits."""
    raw = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
    if bits >= 8:
        return raw.copy()
    per = 8 // bits
    codes = np.resize(
        np.append(raw & (1 << bits) - 1, np.zeros(-len(raw) % per, np.uint8)),
        (-(-len(raw) // per), per),
    )
    return (codes << (np.arange(per, dtype=np.uint8) * bits)).sum(1).astype(np.uint8)


def unpack(raw: np.ndarray, kind, bits: int, shape) -> np.ndarray:
    count = int(np.prod(shape, dtype=np.int64))
    if bits >= 8:
        return np.frombuffer(raw.tobytes()[: count * bits // 8], kind).reshape(shape)
    per = 8 // bits
    codes = (raw[:, None] >> (np.arange(per, dtype=np.uint8) * bits) & (1 << bits) - 1).reshape(-1)
    values = codes[:count].astype(np.uint8)
    if np.dtype(kind) in (np.dtype(ml_dtypes.int4), np.dtype(ml_dtypes.int2)):
        signed = values.astype(np.int8)
        signed = np.where(signed >> (bits - 1), signed - (1 << bits), signed)
        return signed.astype(kind).reshape(shape)
    if np.dtype(kind) == np.dtype(ml_dtypes.float4_e2m1fn):
        return values.view(kind).reshape(shape)
    return values.astype(kind).reshape(shape)


class Runner:
    """A session, and models run in it."""

    def __init__(self, build: Path, backend: str):
        self.ffi = cffi.FFI()
        self.ffi.cdef((build / "share/tenon/tenon.cdef").read_text())
        self.c = self.ffi.dlopen(str(build / "lib/libtenon.so"))
        self.options = json.dumps({"backend": backend})
        self.keep: list = []
        out = self.ffi.new("tenon_session**")
        config = {"plugin_path": [str(build / "lib/tenon/plugins")]}
        self.check(self.c.tenon_open(self.text(json.dumps(config)), out))
        self.session = out[0]
        self.host = self.c.tenon_host(self.session)
        self.graph = self.service("tenon.host.graph/1", "tn_host_graph")
        self.eval = self.service("tenon.host.eval/1", "tn_host_eval")

    def service(self, name: str, table: str):
        found = self.host.get_interface(self.host, self.text(name))
        return self.ffi.cast(f"const {table}*", found)

    def text(self, text: str):
        data = self.ffi.new("char[]", text.encode())
        self.keep.append(data)
        return self.ffi.new("tn_str*", {"data": data, "len": len(text.encode())})[0]

    def check(self, status):
        if status == self.ffi.NULL:
            return
        parts: list[bytes] = []
        self.c.tenon_status_text(status, self.sink(parts))
        self.c.tenon_status_release(status)
        why = b"".join(parts).decode()
        raise Skipped(why) if "no loaded plugin brings" in why else Failed(why)

    def sink(self, into: list):
        @self.ffi.callback("tn_status*(void*, const void*, uint64_t)")
        def write(_ctx, data, length):
            into.append(bytes(self.ffi.buffer(data, length)))
            return self.ffi.NULL

        self.keep.append(write)
        return self.ffi.new("tn_sink*", {"ctx": self.ffi.NULL, "write": write})

    def tensor(self, kind, shape, raw):
        code, bits = CODES[np.dtype(kind)]
        dims = self.ffi.new("int64_t[]", [int(d) for d in shape] or 1)
        steps = [int(np.prod(shape[i + 1 :], dtype=np.int64)) for i in range(len(shape))]
        strides = self.ffi.new("int64_t[]", steps or 1)
        raw = raw if raw.size else np.zeros(8, np.uint8)
        self.keep += [dims, strides, raw]
        made = self.ffi.new("DLTensor*")
        made.data = self.ffi.from_buffer(raw)
        made.device.device_type = 1
        made.ndim = len(shape)
        made.dtype.code, made.dtype.bits, made.dtype.lanes = code, bits, 1
        made.shape, made.strides = dims, strides
        self.keep.append(made)
        return made

    def outputs(self, into: dict):
        @self.ffi.callback("tn_status*(void*, uint64_t, const DLTensor*, DLTensor*)")
        def get(_ctx, i, proto, out):
            shape = [proto.shape[d] for d in range(proto.ndim)]
            kind = DTYPES[(proto.dtype.code, proto.dtype.bits)]
            count = int(np.prod(shape, dtype=np.int64))
            raw = np.zeros((count * proto.dtype.bits + 7) // 8, np.uint8)
            into[i] = (raw, kind, proto.dtype.bits, shape)
            out[0] = self.tensor(kind, shape, raw)[0]
            return self.ffi.NULL

        self.keep.append(get)
        return self.ffi.new("tn_outputs*", {"ctx": self.ffi.NULL, "get": get})

    def run(self, model: onnx.ModelProto, inputs: list) -> list:
        self.keep = self.keep[:2]
        graph, plan = self.ffi.new("tn_graph**"), self.ffi.new("tn_plan**")
        with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
            file.write(model.SerializeToString())
            file.flush()
            self.check(
                self.c.tenon_load(
                    self.session, self.text(file.name), self.text(""), self.ffi.NULL, graph
                )
            )
        try:
            self.check(self.c.tenon_compile(self.session, graph[0], self.text(self.options), plan))
            given = [self.tensor(a.dtype, a.shape, pack(a, CODES[a.dtype][1])) for a in inputs]
            made: dict = {}
            pointers = self.ffi.new("DLTensor*[]", given or 1)
            self.check(
                self.c.tenon_run(plan[0], pointers, len(given), self.outputs(made), self.ffi.NULL)
            )
            return [unpack(*made[i]) for i in sorted(made)]
        finally:
            if plan[0] != self.ffi.NULL:
                self.eval.release(plan[0])
            self.graph.release(graph[0])


def compare(got: list, expected: list, rtol: float, atol: float):
    if len(got) != len(expected):
        raise Failed(f"expected {len(expected)} outputs, got {len(got)}")
    for i, (a, b) in enumerate(zip(got, expected)):
        if a.dtype != b.dtype or a.shape != b.shape:
            raise Failed(f"output {i}: expected {b.dtype}{b.shape}, got {a.dtype}{a.shape}")
        wide = np.float64 if a.dtype != np.int64 and a.dtype != np.uint64 else a.dtype
        np.testing.assert_allclose(a.astype(wide), b.astype(wide), rtol=rtol, atol=atol)


def as_array(value) -> np.ndarray:
    if isinstance(value, onnx.TensorProto):
        value = onnx.numpy_helper.to_array(value)
    if not isinstance(value, (np.ndarray, np.generic)):
        raise Skipped("a sequence or an optional")
    array = np.asarray(value)
    if array.dtype not in CODES:
        raise Skipped(f"a tensor of {array.dtype}")
    return array


def run_case(runner: Runner, case):
    for inputs, outputs in case.data_sets:
        wanted = [as_array(value) for value in outputs]
        got = runner.run(case.model, [as_array(value) for value in inputs])
        compare(got, wanted, case.rtol, case.atol)


def operator_of(case) -> str:
    return case.model.graph.node[0].op_type


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=Path)
    parser.add_argument("--only", default="", help="cases whose name matches")
    parser.add_argument("--backend", default="reference")
    parser.add_argument("--list", action="store_true", help="print each failure")
    args = parser.parse_args()
    runner = Runner(args.build, args.backend)
    passed, failed = collections.Counter(), collections.defaultdict(list)
    text = (HERE / "expected_failures.txt").read_text()
    listed = {subject for device, subject in expected.read(text) if device == args.backend}
    wrong, skipped = 0, collections.Counter()
    for case in collect_testcases(None):
        if not re.search(args.only, case.name):
            continue
        try:
            run_case(runner, case)
            passed[operator_of(case)] += 1
            if case.name in listed:
                print(f"{case.name}: passes, but is listed as an expected failure")
                wrong += 1
        except Skipped as why:
            skipped[operator_of(case)] += 1
            if args.list:
                print(f"{case.name}: skipped, {' '.join(str(why).split())[:200]}")
        except (Failed, AssertionError) as why:
            failed[operator_of(case)].append(case.name)
            wrong += case.name not in listed
            if args.list:
                print(f"{case.name}: {' '.join(str(why).split())[:300]}", flush=True)
    for name in sorted(set(passed) | set(failed)):
        print(f"{name}: {passed[name]} of {passed[name] + len(failed[name])}")
    print(
        f"{sum(passed.values())} of {sum(passed.values()) + sum(map(len, failed.values()))} pass,"
        f" {sum(skipped.values())} skipped, {wrong} not as expected"
    )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
