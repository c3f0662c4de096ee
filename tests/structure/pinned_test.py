# SPDX-License-Identifier: Apache-2.0
"""The gate `pinned` names packages without a version, and modules of packages without a name."""

import pinned
import pytest
from planted import only, write


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("requirements.txt", "numpy==2\nonnx  # newest\n", "requirements.txt:2: onnx: expected"),
        ("tests/sums_test.py", "import os\nfrom scipy import linalg\n", ":2: scipy is in none"),
        ("tests/sums_test.py", "import os\nimport PIL.Image\n", ":2: PIL is in none"),
    ],
)
def test_a_package_without_a_version_is_named(tmp_path, name, text, words):
    write(tmp_path, name, text)

    assert words in only(pinned.violations(tmp_path))


def test_pinned_packages_pass(tmp_path):
    write(tmp_path, "requirements.txt", "# all\n-r more.txt\npillow==13.0  # images\n")
    write(tmp_path, "tests/sums_test.py", "import sums\nfrom PIL import Image\n")
    write(tmp_path, "tests/sums.py", "import os.path\n")

    assert pinned.violations(tmp_path) == []
