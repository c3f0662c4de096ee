# SPDX-License-Identifier: Apache-2.0
"""The packed ONNX cases run without Python: here on the reference and as emulated plans, on a GPU
machine on cuda."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PACK = HERE.parents[1] / "conformance" / "pack_cases.py"


def run(folder, backend="reference", program="TENON_CASES_TEST", only="*"):
    variables = {"TENON_TEST_ONNX_CASES": str(folder), "TENON_TEST_BACKEND": backend}
    return subprocess.run(
        [os.environ[program], f"--gtest_filter={only}"],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_packed_cases_give_what_is_expected(tmp_path):
    only = "^test_(add|matmul_2d|softmax_axis_1|cast_FLOAT_to_FLOAT8E4M3FN|quantizelinear_axis)$"
    packed = subprocess.run(
        [sys.executable, PACK, tmp_path, "--only", only],
        capture_output=True,
        text=True,
        check=True,
    )
    assert packed.stdout.startswith("5 cases")

    on_reference = run(tmp_path)

    assert on_reference.returncode == 0, on_reference.stdout
    assert re.search(r"PASSED  \] 6 tests", on_reference.stdout), on_reference.stdout

    emulated = run(tmp_path, program="TENON_ENGINE_TEST", only="EmulatedCases*")
    assert emulated.returncode == 0, emulated.stdout
    assert "5 of 5 cases" in emulated.stdout, emulated.stdout

    # A wrong answer is a failure, not a pass.
    cases = json.loads((tmp_path / "cases.json").read_text())
    for case in cases:
        case["outputs"][0]["at"][0] -= 4
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    damaged = run(tmp_path, program="TENON_ENGINE_TEST", only="EmulatedCases*")
    assert damaged.returncode != 0, damaged.stdout
    assert "fails on the reference too" in run(tmp_path).stdout
