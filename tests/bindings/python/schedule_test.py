# SPDX-License-Identifier: Apache-2.0
import gc

import pytest
import tenon


def test_a_schedule_is_called_with_a_step():
    lr = tenon.schedule.cosine(base=1e-3, warmup=100)
    assert lr(0, 1100) == pytest.approx(1e-5)
    assert lr(600, 1100) == pytest.approx(0.5e-3)
    assert lr(1100, 1100) == 0


def test_a_function_is_a_schedule_alone_and_within_others():
    rise = tenon.schedule.function(lambda step, steps: step * 2)
    both = tenon.schedule.product(first=rise, second=lambda step, steps: steps or 1)
    del rise
    gc.collect()
    assert both(3) == 6
    assert both(3, 10) == 60


def test_what_a_function_raises_is_reported():
    def fails(step, steps):
        raise ValueError(f"no idea at {step}")

    with pytest.raises(tenon.TenonError, match="no idea at 7"):
        tenon.schedule.function(fails)(7)
    with pytest.raises(tenon.TenonError, match="expected a finite number"):
        tenon.schedule.function(lambda step, steps: float("inf"))(0)


def test_unknown_names_and_options_are_refused():
    with pytest.raises(tenon.NotFound, match="expected one of"):
        tenon.schedule.cosin()
    with pytest.raises(tenon.InvalidArgument, match="did you mean 'base'"):
        tenon.schedule.cosine(bas=1)
    with pytest.raises(tenon.InvalidArgument, match="option steps"):
        tenon.schedule.cosine()(3)
