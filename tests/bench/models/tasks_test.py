# SPDX-License-Identifier: Apache-2.0
"""Published models do what they are for, in fp32 and in int8. Those that `scripts/fetch` has not
put into .cache/models are skipped."""

import pytest
import tasks


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("task", tasks.TASKS, ids=lambda task: task.name)
def test_a_model_does_what_it_is_for(task, precision):
    try:
        found = tasks.measure(task, precision, "onednn")
    except tasks.Missing as why:
        pytest.skip(str(why))

    assert task.is_met(precision, found), found


@pytest.mark.parametrize(
    "a, b, edits", [("", "", 0), ("abc", "abc", 0), ("abc", "adc", 1), ("kitten", "sitting", 3)]
)
def test_edits_are_counted(a, b, edits):
    assert tasks.distance(a, b) == edits
