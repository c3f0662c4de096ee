# SPDX-License-Identifier: Apache-2.0
"""The session of this process, and where its log lines and progress go."""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from . import _core
from .errors import for_users

_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)
_lock = threading.Lock()
_session: _core.Session | None = None
_config: dict = {}

logger = logging.getLogger("tenon")


def _log(level: int, who: str, message: str) -> None:
    target = logger.getChild(who) if who else logger
    if not target.isEnabledFor(logging.DEBUG):
        message = for_users(message)
    target.log(_LEVELS[min(level, 3)], "%s", message)


class Bar:
    """Progress on one line of a terminal or a notebook, for tasks of more than a second."""

    def __init__(self, stream=None, patience: float = 1.0) -> None:
        self.stream = stream if stream is not None else sys.stderr
        self.patience = patience
        self._started: dict[int, float] = {}
        self._shown: dict[int, int] = {}

    def __call__(self, task: int, title: str, done: int | None, total: int) -> None:
        now = time.monotonic()
        if done is None:
            self._started.pop(task, None)
            if self._shown.pop(task, None) is not None:
                self.stream.write("\r\x1b[K")
                self.stream.flush()
            return
        started = self._started.setdefault(task, now)
        percent = 100 * done // total if total else done
        if now - started < self.patience or self._shown.get(task) == percent:
            return
        self._shown[task] = percent
        how_far = f"{percent:3d} % of {total}" if total else str(done)
        if total and done and now > started:
            rate = done / (now - started)
            minutes, seconds = divmod(round((total - done) / rate), 60)
            how_far += f", {rate:.3g}/s, {minutes}:{seconds:02d} left "
        self.stream.write(f"\r{title}: {how_far}")
        self.stream.flush()


def _shows_progress() -> bool:
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


def configure(
    *,
    plugin_path: list[str] | None = None,
    safe_mode: bool | None = None,
    threads: int | None = None,
) -> None:
    """Says how the session is to be opened; only before anything else was called.

    plugin_path: folders with plugins, looked through first. safe_mode: only the plugins that came
    with Tenon. threads: of the thread pool.
    """
    if _session is not None:
        raise RuntimeError("configure: expected to come before the first use of tenon")
    given = {"plugin_path": plugin_path, "safe_mode": safe_mode, "threads": threads}
    _config.update({key: value for key, value in given.items() if value is not None})


def session() -> _core.Session:
    """The one session of this process, opened at first use."""
    global _session
    with _lock:
        if _session is None:
            opened = _core.Session(json.dumps(_config))
            opened.on_log(_log)
            if _shows_progress():
                opened.on_progress(Bar())
            atexit.register(_silence, opened)
            _session = opened
    return _session


def progress(seen: Callable[[int, str, int | None, int], None] | None) -> None:
    """The function that is notified of progress: `seen(task, title, done, total)`; None: none.

    done is None when the task has ended, total is 0 where it is not known.
    """
    session().on_progress(seen)


@contextlib.contextmanager
def chrome_trace(path: str | os.PathLike[str]) -> Iterator[None]:
    """Writes what happens inside to a file for chrome://tracing or Perfetto, by thread:

        with tn.chrome_trace("run.json"):
            model(x)

    Spans are compilations, runs, the parts of a run by backend, copies between devices, and what
    backends trace themselves (nodes, work on a device). One is recorded at a time.
    """
    session().trace_start()
    try:
        yield
    finally:
        Path(path).write_text(session().trace_stop(), encoding="utf-8")


def _silence(opened: _core.Session) -> None:
    # After this Python is going away and cannot be called.
    opened.on_log(None)
    opened.on_progress(None)
