# SPDX-License-Identifier: Apache-2.0
"""Linear algebra, by the array API's names: matrices are the last two axes, others count them."""

from .arrays import PARTS

__all__ = [*PARTS["linalg"]]
globals().update(PARTS["linalg"])
