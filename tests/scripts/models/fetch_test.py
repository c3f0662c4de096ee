# SPDX-License-Identifier: Apache-2.0
"""The command builds once, keeps what is whole, and says what is wrong in one line."""

import json
import zipfile

import numpy as np
import pytest
from models import fetch, pinned, table, wheels
from models.output import Output


@pytest.fixture
def counted(monkeypatch):
    """A table of one row that counts its builds."""
    builds = []

    def build(output, size=3):
        builds.append(size)
        output.put_arrays("numbers.npz", {"x": np.arange(size)})

    monkeypatch.setattr(table, "ROWS", (table.Row("numbers", "counts", build, {"size": 3}),))
    return builds


def quiet(*_):
    pass


def test_a_second_fetch_builds_nothing(counted, tmp_path):
    first = fetch.fetch("numbers", tmp_path, say=quiet)
    again = fetch.fetch("numbers", tmp_path, say=quiet)

    assert counted == [3]
    assert first == again == [tmp_path / "numbers.npz"]
    assert json.loads((tmp_path / "index.json").read_text())["numbers"]["options"] == {"size": 3}


@pytest.mark.parametrize("damage", ["delete", "truncate", "option", "force"])
def test_what_is_not_current_is_built_again(counted, tmp_path, damage):
    path = fetch.fetch("numbers", tmp_path, say=quiet)[0]
    if damage == "delete":
        path.unlink()
    if damage == "truncate":
        path.write_bytes(path.read_bytes()[:10])
    given = {"size": "5"} if damage == "option" else {}

    fetch.fetch("numbers", tmp_path, given, force=damage == "force", say=quiet)

    assert counted == [3, 5 if damage == "option" else 3]
    assert len(np.load(path)["x"]) == counted[-1]


def test_a_build_that_fails_leaves_no_file(tmp_path):
    output = Output(tmp_path, quiet)

    def fill(file):
        file.write(b"half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        output.write("half.bin", fill)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "argv, text",
    [
        (["nothing"], "fetch: name: expected one of numbers, got 'nothing'"),
        (["numbers", "--set", "n=1"], "fetch numbers: option: expected one of size, got 'n'"),
        (["numbers", "--set", "size=x"], "fetch numbers: option size: expected int, got 'x'"),
    ],
)
def test_bad_arguments_are_one_line(counted, tmp_path, capsys, argv, text):
    assert fetch.main([*argv, "--dir", str(tmp_path)]) == 1
    assert capsys.readouterr().err == text + "\n"
    assert counted == []


def test_a_broken_index_is_named(counted, tmp_path, capsys):
    (tmp_path / "index.json").write_text("{")

    assert fetch.main(["numbers", "--dir", str(tmp_path)]) == 1
    assert "index.json: expected JSON" in capsys.readouterr().err


def test_an_archive_with_another_sum_is_refused(monkeypatch, tmp_path):
    package = wheels.Package("thing==1", "thing-1-py3-none-any.whl", "0" * 64)

    def download(command, **_):
        dest = command[command.index("--dest") + 1]
        with zipfile.ZipFile(f"{dest}/{package.filename}", "w") as file:
            file.writestr("a", "b")
        return wheels.subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(wheels.subprocess, "run", download)
    with pytest.raises(wheels.FetchError, match="expected sha256 0000"):
        wheels.obtain(package, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_archive_without_the_file_is_named(tmp_path):
    path = tmp_path / "thing.whl"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a", "b")

    assert wheels.member(path, "a") == b"b"
    with pytest.raises(wheels.FetchError, match="thing.whl: expected a file 'c' in it"):
        wheels.member(path, "c")


def test_names_in_the_table_are_unique():
    names = [row.name for row in table.ROWS]

    assert len(names) == len(set(names))


def test_pinned_rows_are_rows_and_their_files_are_known():
    assert all(table.find(name).name == name for name in pinned.ROWS)
    for name in pinned.ROWS:
        assert pinned.is_pinned(name.replace("-", "_") + ".onnx"), name
    assert pinned.is_pinned("silero_op15.onnx") and pinned.is_pinned("ppocr_rec_eval.npz")
    assert not pinned.is_pinned("ppocr_det.onnx") and not pinned.is_pinned("minilm_probe.onnx")
