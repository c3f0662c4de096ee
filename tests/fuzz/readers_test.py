# SPDX-License-Identifier: Apache-2.0
"""The counts of libFuzzer's runs add up, and a finding does not end a run."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

CLANG = shutil.which("clang++-16")
pytestmark = pytest.mark.skipif(CLANG is None, reason="clang-16 is not installed")
READERS = Path(__file__).parent / "readers.py"
HEADERS = ["cstdint", "cstdio", "cstdlib", "fcntl.h", "unistd.h"]
TARGETS = {
    "right": """
        static struct Said { ~Said() { printf("7 read, 5 compiled or opened, 3 run\\n"); } } said;
        return data && size > 3 && data[0] == 'a' ? 0 : 0;""",
    "wrong": "if (size > 2 && data[0] == 'F' && data[1] == 'U') __builtin_trap(); return 0;",
    "deadly": "__builtin_trap(); return 0;",
    "slow_once": """
        const char* mark = getenv("MARK");
        if (size > 2 && access(mark, F_OK)) { close(creat(mark, 0600)); sleep(6); }
        return 0;""",
}


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("build")
    (folder / "bin").mkdir()
    for name, body in TARGETS.items():
        source = folder / f"{name}.cpp"
        source.write_text(
            "".join(f"#include <{header}>\n" for header in HEADERS)
            + 'extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {'
            f"(void)data, (void)size; {body} }}\n"
        )
        program = folder / f"bin/fuzz_{name}"
        subprocess.run([CLANG, "-g", "-fsanitize=fuzzer", source, "-o", program], check=True)
    return folder


def run(build: Path, *args: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-B", READERS, build, *args]
    return subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **more},
    )


def test_counts_of_many_runs_add_up(build: Path, tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    counts = []
    for _ in range(2):
        done = run(build, "--seconds", "1", "--state", state, "right")
        assert done.returncode == 0, done
        counts.append(json.loads(state.read_text())["right"])
    assert 0 < counts[0]["executions"] < counts[1]["executions"]
    assert 0 < counts[0]["seconds"] < counts[1]["seconds"]
    assert counts[1]["edges"] > 0 and counts[1]["findings"] == []
    assert f"right: {counts[1]['executions']} executions" in done.stdout
    assert (counts[1]["read"], counts[1]["compiled"], counts[1]["ran"]) == (14, 10, 6)
    assert list((build / "corpus/right").iterdir()) != []  # where the next run begins


def test_a_killed_run_keeps_what_it_had_counted(build: Path, tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    command = [sys.executable, "-B", READERS, build, "--seconds", "60", "--state", state, "right"]
    process = subprocess.Popen([str(part) for part in command], start_new_session=True)
    while process.poll() is None and not state.exists():
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=60)
    before = json.loads(state.read_text())["right"]["executions"]
    run(build, "--seconds", "1", "--state", state, "right")
    assert json.loads(state.read_text())["right"]["executions"] > before


def test_a_finding_is_kept_and_named_and_fails(build: Path, tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    done = run(build, "--seconds", "2", "--state", state, "wrong", "right")
    assert done.returncode == 1
    counts = json.loads(state.read_text())
    assert counts["wrong"]["findings"], counts
    for finding in counts["wrong"]["findings"]:
        assert Path(finding).read_bytes().startswith(b"FU")
        assert f"wrong: FOUND {finding}" in done.stdout
    assert counts["right"]["executions"] > 0  # the next target has its turn


def test_a_target_that_always_fails_ends(build: Path) -> None:
    done = run(build, "--seconds", "600", "deadly")
    assert done.returncode == 1
    assert done.stdout.count("deadly: FOUND") == 5


def test_what_takes_long_once_is_no_finding(build: Path, tmp_path: Path) -> None:
    done = run(build, "--seconds", "9", "--timeout", "3", "slow_once", MARK=str(tmp_path / "mark"))
    assert (tmp_path / "mark").exists()
    assert done.returncode == 0, done
    assert "0 findings" in done.stdout
