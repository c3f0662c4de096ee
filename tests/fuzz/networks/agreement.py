# SPDX-License-Identifier: Apache-2.0
"""Whether two arrays agree, and how two trainings do."""

from __future__ import annotations

import numpy as np


class Finding(AssertionError):
    """Two results that differ, or something that is refused and should not be."""


def same(what: str, got: np.ndarray, wanted: np.ndarray, tolerance: float) -> None:
    """Within tolerance times 1 + the largest wanted number; 0: the same bits."""
    if got.shape != wanted.shape:
        raise Finding(f"{what}: shape {got.shape} in place of {wanted.shape}")
    got, wanted = got.astype("float64"), wanted.astype("float64")
    if not np.array_equal(np.isfinite(got), np.isfinite(wanted)):
        raise Finding(f"{what}: not finite elsewhere")
    apart = np.abs(got - wanted)[np.isfinite(wanted)].max(initial=0)
    bound = tolerance * (1 + np.abs(wanted)[np.isfinite(wanted)].max(initial=0))
    if apart > bound:
        raise Finding(f"{what}: {apart:.3g} apart, {bound:.3g} is accepted")


def noise_db(got: np.ndarray, wanted: np.ndarray) -> float:
    """The signal-to-noise ratio of got, in dB; 200 where there is no noise."""
    wanted = wanted.astype("float64")
    noise = np.square(got - wanted).sum()
    signal = np.square(wanted).sum()
    return 200.0 if noise == 0 else float(10 * np.log10(max(signal, 1e-300) / noise))
