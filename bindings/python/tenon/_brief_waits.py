# SPDX-License-Identifier: Apache-2.0
"""Imported before anything that loads libgomp, which reads its environment once, when loaded.

Its threads turn in a loop for 4 ms and more before they sleep, which costs many times over where
other programs want the same cores (bindings/lua/command/brief_waits.hpp has the figures). What the
user has set stands, and child processes see no change.
"""

import os

if "GOMP_SPINCOUNT" not in os.environ and "OMP_WAIT_POLICY" not in os.environ:
    os.environ["GOMP_SPINCOUNT"] = "3000"
    try:
        from . import _core  # noqa: F401
    finally:
        del os.environ["GOMP_SPINCOUNT"]
