# SPDX-License-Identifier: Apache-2.0
"""Programs that keep a machine busy, as one process each: they run until they are ended.

busy.py spin|compile|stream
"""

import contextlib
import os
import signal
import subprocess
import sys
import time

SOURCE = "#include <map>\n#include <regex>\n#include <string>\nint main() {\n" + "".join(
    f'  std::map<std::string, int> m{i}{{{{"a", {i}}}}};'
    f' if (std::regex_match("b{i}", std::regex("b[0-9]+"))) m{i}["b"] = {i};\n'
    for i in range(40)
)


def spin() -> None:
    while True:
        pass


def compile_sources() -> None:
    command = ["c++", "-O2", "-x", "c++", "-", "-o", "/dev/null"]
    while True:
        subprocess.run(command, input=(SOURCE + "}\n").encode(), check=True)


def stream() -> None:
    import numpy as np

    source, target = np.ones(1 << 24), np.zeros(1 << 24)  # 128 MiB each: more than most caches
    while True:
        np.copyto(target, source)


KINDS = {"spin": spin, "compile": compile_sources, "stream": stream}


@contextlib.contextmanager
def programs(kind: str, count: int):
    """So many of them run inside the block; they and what they started end with it."""
    command = [sys.executable, __file__, kind]
    started = [subprocess.Popen(command, start_new_session=True) for _ in range(count)]
    try:
        time.sleep(0.5 if count else 0)  # until all of them are at it
        died = [each.returncode for each in started if each.poll() is not None]
        if died:
            raise RuntimeError(f"busy.py {kind}: ended at once with exit code {died[0]}")
        yield
    finally:
        for each in started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(each.pid, signal.SIGKILL)
            each.wait()


def end_with_parent() -> None:
    """However the parent ends: a forgotten program would spoil all that is measured after it."""
    import ctypes

    set_parent_death_signal = 1  # PR_SET_PDEATHSIG of Linux
    ctypes.CDLL(None, use_errno=True).prctl(set_parent_death_signal, signal.SIGKILL)


if __name__ == "__main__":
    end_with_parent()
    KINDS[sys.argv[1]]()
