# SPDX-License-Identifier: Apache-2.0
"""The generators and the checks beside the tests are importable by name."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ABI = HERE.parent.parent / "abi"
sys.path[:0] = [str(HERE), str(ABI / "generate")]

GOOD = """/* SPDX-License-Identifier: Apache-2.0
 * A service. All functions: [any]. */
#ifndef TENON_X_H
#define TENON_X_H
#include <stdint.h>
#define TN_CALL
#define TENON_API
#define TN_X_MANY 7u /* a limit */
typedef struct tn_ctx tn_ctx;
typedef struct tn_status tn_status;
typedef struct tn_str { /* FROZEN: text */
  const char* data;
  uint64_t len;
} tn_str;
typedef struct tn_x {
  uint32_t struct_size;
  uint32_t revision;
  tn_str name; /* for people */
  /* size: in bytes. Errors: TN_X_MANY: too many. */
  tn_status*(TN_CALL* start)(tn_ctx*, uint64_t size);
  tn_str(TN_CALL* text)(tn_ctx*); /* borrowed, until stop */
  void(TN_CALL* stop)(tn_ctx*, uint64_t n); /* at once. [serial] */
} tn_x;
#define TN_ABI_MAJOR 0u /* the version */
#define TN_ABI_MINOR 3u /* the newest */
#define TN_ABI_OLDEST_MINOR 2u /* the oldest */
TENON_API int32_t tenon_x(const tn_x* const* list, uint64_t n);
#endif
"""


@pytest.fixture
def header(tmp_path):
    """Writes tenon/abi.h with one text of GOOD replaced, and returns its include folder."""

    def write(old: str = "", new: str = ""):
        assert old in GOOD
        path = tmp_path / "include/tenon/abi.h"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(GOOD.replace(old, new, 1) if old else GOOD)
        return tmp_path / "include"

    return write
