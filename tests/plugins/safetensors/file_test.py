# SPDX-License-Identifier: Apache-2.0
"""Round trips, and files that are refused."""

import json
import random
import struct

import numpy as np
import pytest
from tenon_library import Tenon, TenonError

W = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(scope="module")
def tenon():
    return Tenon()


def file_of(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(dtype="F32", shape=(2, 3), begin=0, end=24):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


def parse(content):
    (n,) = struct.unpack_from("<Q", content)
    return json.loads(content[8 : 8 + n]), content[8 + n :]


GOOD = file_of(
    {
        "__metadata__": {"format": "pt"},
        "b": entry("I8", [3], 24, 27),
        "w": entry(),
        "none": entry("F16", [0, 4], 27, 27),
        "one": entry("BF16", [], 27, 29),
    },
    W.tobytes() + b"abcde",
)


def test_some_of_the_tensors_can_be_written_alone(tenon, tmp_path):
    (tmp_path / "in.safetensors").write_bytes(GOOD)
    target = tmp_path / "out.safetensors"
    tenon.convert(tmp_path / "in.safetensors", target, json.dumps({"only": ["o*", "b"]}))
    header, data = parse(target.read_bytes())
    assert set(header) == {"__metadata__", "b", "one"} and len(data) == 5
    with pytest.raises(TenonError, match="option only: no constant fits 'head"):
        tenon.convert(tmp_path / "in.safetensors", target, json.dumps({"only": "head.*"}))


def test_tensors_survive(tenon, tmp_path):
    (tmp_path / "in.safetensors").write_bytes(GOOD)

    tenon.convert(tmp_path / "in.safetensors", tmp_path / "out.safetensors")

    header, data = parse((tmp_path / "out.safetensors").read_bytes())
    got = {
        k: (v["dtype"], v["shape"], data[slice(*v["data_offsets"])])
        for k, v in header.items()
        if k != "__metadata__"
    }
    assert header["__metadata__"] == {"format": "pt"}
    assert got == {
        "w": ("F32", [2, 3], W.tobytes()),
        "b": ("I8", [3], b"abc"),
        "one": ("BF16", [], b"de"),
        "none": ("F16", [0, 4], b""),
    }
    assert all(v["data_offsets"][0] % 4 == 0 for k, v in header.items() if k == "w")


def test_written_again_it_is_the_same(tenon, tmp_path):
    (tmp_path / "in.safetensors").write_bytes(GOOD)
    tenon.convert(tmp_path / "in.safetensors", tmp_path / "a.safetensors")
    tenon.convert(tmp_path / "a.safetensors", tmp_path / "b.safetensors")

    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()


BAD = {
    "empty": (b"", "got 0 bytes"),
    "header too long": (file_of({"w": entry()}, W.tobytes(), 10**6), "header: expected at most"),
    "header huge": (file_of({}, b"", 2**63), "header: expected at most"),
    "no object": (file_of(b"[1, 2]"), "expected a JSON object"),
    "no JSON": (file_of(b"{nothing"), "expected a JSON object"),
    "data missing": (file_of({"w": entry()}, b"abc"), "tensor w: data_offsets: .* 3 bytes of data"),
    "wrong size": (file_of({"w": entry(end=20)}, W.tobytes()), "expected 24 bytes, got 20"),
    "backwards": (file_of({"w": entry(begin=24, end=0)}, W.tobytes()), "tensor w: data_offsets"),
    "overflow": (file_of({"w": entry(shape=[2**40, 2**40])}, W.tobytes()), "size overflows"),
    "negative": (file_of({"w": entry(shape=[-2, -3])}, W.tobytes()), "shape: expected a list"),
    "type": (file_of({"w": entry("F33")}, W.tobytes()), 'dtype: expected a known type.*"F33"'),
    "overlap": (file_of({"w": entry(), "v": entry()}, W.tobytes()), "tensors . and . overlap"),
    "twice": (file_of(b'{"w": 1, "w": 2}'), "two tensors have the name w"),
    "metadata": (file_of({"__metadata__": {"a": 1}}), "__metadata__: a: expected a text"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_refused(name, tenon, tmp_path):
    content, match = BAD[name]
    (tmp_path / "m.safetensors").write_bytes(content)

    with pytest.raises(TenonError, match=match):
        tenon.load(tmp_path / "m.safetensors")


def test_mutations_are_answered(tenon, tmp_path):
    rng = random.Random(3)
    refused = 0
    for i in range(1500):
        content = bytearray(GOOD[: rng.randrange(len(GOOD))] if i % 3 == 0 else GOOD)
        for _ in range(rng.randrange(1, 4)):
            if content:
                content[rng.randrange(len(content))] = rng.randrange(256)
        (tmp_path / "m.safetensors").write_bytes(content)
        try:
            tenon.load(tmp_path / "m.safetensors")
        except TenonError:
            refused += 1

    assert refused > 100
