# SPDX-License-Identifier: Apache-2.0
"""ONNX's own single-operator cases as two files, for machines without Python packages.

    python3 tests/conformance/pack_cases.py FOLDER [--only REGEX]

Writes FOLDER/cases.json, which says what each case is, and FOLDER/cases.bin with models, inputs and
expected outputs as bytes. `cuda_cases_test` runs them. Cases of sequences, optionals and texts are
left out.
"""

import argparse
import json
import re
from pathlib import Path

import expected
import node_cases
from onnx.backend.test.case.node import collect_testcases


class Writer:
    """Bytes behind each other; each stretch once."""

    def __init__(self, file):
        self.file, self.size, self.known = file, 0, {}

    def put(self, data: bytes) -> list[int]:
        if data not in self.known:
            self.known[data] = [self.size, len(data)]
            self.file.write(data)
            self.size += len(data)
        return self.known[data]

    def tensor(self, value) -> dict:
        array = node_cases.as_array(value)
        code, bits = node_cases.CODES[array.dtype]
        raw = node_cases.pack(array, bits).tobytes()
        return {"code": code, "bits": bits, "shape": list(array.shape), "at": self.put(raw)}


def fails_everywhere() -> set[str]:
    text = (node_cases.HERE / "expected_failures.txt").read_text()
    found = expected.read(text)
    return {s for _, s in found if all((device, s) in found for device in expected.DEVICES)}


def entries(case, writer: Writer, listed: bool):
    for number, (inputs, outputs) in enumerate(case.data_sets):
        yield {
            "name": case.name + (f"_set{number}" if number else ""),
            "listed": listed,
            "rtol": case.rtol,
            "atol": case.atol,
            "model": writer.put(case.model.SerializeToString()),
            "inputs": [writer.tensor(value) for value in inputs],
            "outputs": [writer.tensor(value) for value in outputs],
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="cases whose name matches")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    written, left_out, listed = [], 0, fails_everywhere()
    with (args.folder / "cases.bin").open("wb") as file:
        writer = Writer(file)
        for case in collect_testcases(None):
            if not re.search(args.only, case.name):
                continue
            try:
                written += list(entries(case, writer, case.name in listed))
            except node_cases.Skipped:
                left_out += 1
    (args.folder / "cases.json").write_text(json.dumps(written))
    print(f"{len(written)} cases, {writer.size >> 10} KiB; {left_out} left out")


main()
