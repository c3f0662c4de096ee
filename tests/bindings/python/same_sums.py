# SPDX-License-Identifier: Apache-2.0
"""Results that differ in the layout of operands alone.

They are equal to the bit, but on CPUs without AVX-512: there oneDNN's products sum in another order
where an operand lies transposed or packed.
"""

import os
from pathlib import Path

import numpy as np

CAPPED = os.environ.get("ONEDNN_MAX_CPU_ISA", "").startswith(("SSE", "AVX2"))
SUMS_BY_LAYOUT = CAPPED or "avx512f" not in Path("/proc/cpuinfo").read_text()


def assert_same(one, other):
    if SUMS_BY_LAYOUT:
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)
    else:
        np.testing.assert_array_equal(one, other)
