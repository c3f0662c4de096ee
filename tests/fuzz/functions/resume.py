# SPDX-License-Identifier: Apache-2.0
"""What a long run has come to, in a file (--state FILE), where the same command goes on."""

from __future__ import annotations

import collections
import json
import os
import sys
import time
from pathlib import Path
from typing import Any


class Tally:
    """Counts of all functions so far, in this process and those before it."""

    def __init__(self, first: int) -> None:
        self.next = first
        self.functions = self.values = self.compared = 0
        self.found: list[int] = []
        self.words: collections.Counter[str] = collections.Counter()
        self.refused: collections.Counter[str] = collections.Counter()
        self.types: collections.Counter[str] = collections.Counter()
        self._before = 0.0
        self._start = time.monotonic()

    @property
    def seconds(self) -> float:
        return self._before + time.monotonic() - self._start

    def write(self, path: Path | None, run: dict[str, Any]) -> None:
        """The file is whole whenever the process ends: it is written beside and renamed."""
        if path is None:
            return
        done = {key: value for key, value in vars(self).items() if not key.startswith("_")}
        beside = path.with_name(path.name + ".new")
        text = json.dumps({"run": run, "done": {**done, "seconds": self.seconds}}, indent=1)
        beside.write_text(text + "\n")
        os.replace(beside, path)

    def read(self, path: Path | None, run: dict[str, Any]) -> None:
        """Takes up what the file has; leaves the process where it is another run's."""
        if path is None or not path.exists():
            return
        kept = json.loads(path.read_text())
        if kept["run"] != run:
            sys.exit(
                f"{path}: expected the state of {run}, got that of {kept['run']}: name another "
                "file, or repeat its arguments"
            )
        done = kept["done"]
        self._before = done.pop("seconds")
        for key, value in done.items():
            own = getattr(self, key)
            setattr(self, key, type(own)(value))
