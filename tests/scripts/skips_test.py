# SPDX-License-Identifier: Apache-2.0
"""Skipped tests are counted with their reasons, whichever tool skipped them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import skips

JUNIT = """<testsuite tests="4">
 <testcase name="Cuda.Runs" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
  <system-out>[ RUN      ] Cuda.Runs
/src/cuda_test.cpp:12: Skipped
no GPU

[  SKIPPED ] Cuda.Runs (0 ms)</system-out></testcase>
 <testcase name="python.files" status="run"><system-out>..ss
SKIPPED [2] tests/files_test.py:30: needs a user other than root
3 passed, 2 skipped</system-out></testcase>
 <testcase name="Other.Runs" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>
 <testcase name="Fine.Runs" status="run"><system-out>[       OK ] Fine.Runs</system-out></testcase>
</testsuite>"""


def test_each_reason_has_its_count() -> None:
    assert skips.reasons(JUNIT) == {
        "no GPU": 1,
        "needs a user other than root": 2,
        "SKIP_RETURN_CODE=77": 1,
    }
