# SPDX-License-Identifier: Apache-2.0
"""The rows that every run of the tests has. `scripts/test` fetches them, by `scripts/fetch tests`;
a test that misses one of their files fails, while one that misses another file is skipped."""

ROWS = ("minilm", "minilm-data", "ppocr-rec", "ppocr-rec-data", "magika", "silero")
# Files are called after their rows.
_STEMS = ("minilm", "ppocr_rec", "magika", "silero")


def is_pinned(file: str) -> bool:
    """Whether a file of this name comes from one of the rows."""
    return file.startswith(_STEMS) and not file.startswith("minilm_probe")
