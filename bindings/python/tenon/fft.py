# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms, by the array API's names: complex numbers are pairs in a last axis of two."""

from .arrays import PARTS

__all__ = [*PARTS["fft"]]
globals().update(PARTS["fft"])
