# SPDX-License-Identifier: Apache-2.0
"""The command: fetch NAME... puts models and data sets into a folder, once."""

import argparse
import contextlib
import fcntl
import json
import pathlib
import sys

from models import pinned, table, wheels
from models.output import Output

ROOT = pathlib.Path(__file__).resolve().parents[2]
INDEX = "index.json"


def read_index(folder: pathlib.Path) -> dict:
    try:
        return json.loads((folder / INDEX).read_text())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise wheels.FetchError(
            f"fetch: {folder / INDEX}: expected JSON, got '{error}': delete it to build anew"
        ) from error


def options_of(row: table.Row, given: dict[str, str]) -> dict:
    """The row's options with what the command line sets, each of the default's type."""
    options = dict(row.options)
    for key, text in given.items():
        if key not in options:
            known = ", ".join(options) or "none"
            raise wheels.FetchError(
                f"fetch {row.name}: option: expected one of {known}, got '{key}'"
            )
        try:
            options[key] = type(options[key])(text)
        except ValueError as error:
            kind = type(options[key]).__name__
            raise wheels.FetchError(
                f"fetch {row.name}: option {key}: expected {kind}, got '{text}'"
            ) from error
    return options


def is_current(folder: pathlib.Path, entry: dict | None, stamp: dict) -> bool:
    """Whether the files of an index entry are there and were made by the same build."""
    if entry is None or {key: entry.get(key) for key in stamp} != stamp:
        return False
    paths = [(folder / name, known["bytes"]) for name, known in entry["files"].items()]
    return all(path.exists() and path.stat().st_size == size for path, size in paths)


@contextlib.contextmanager
def locked(folder: pathlib.Path):
    """One fetch at a time works on a folder; the others wait."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def fetch(
    name: str, folder: pathlib.Path, given=None, force=False, say=print
) -> list[pathlib.Path]:
    """Makes sure that a row's files are in folder, and returns their paths."""
    row = table.find(name)
    options = options_of(row, given or {})
    stamp = {"version": row.version, "options": options}
    with locked(folder):
        entry = read_index(folder).get(name)
        if force or not is_current(folder, entry, stamp):
            output = Output(folder, say)
            row.build(output, **options)
            files = {
                file: {
                    "bytes": (folder / file).stat().st_size,
                    "sha256": wheels.sha256_of(folder / file),
                }
                for file in output.written
            }
            entry = stamp | {"summary": row.summary, "files": files}
            index = read_index(folder) | {name: entry}
            text = json.dumps(index, indent=2, sort_keys=True) + "\n"
            output.put_bytes(INDEX, text.encode())
    return [folder / file for file in entry["files"]]


def arguments(argv):
    parser = argparse.ArgumentParser(prog="fetch", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="what to fetch, 'tests' or 'all'")
    parser.add_argument("--dir", type=pathlib.Path, default=ROOT / ".cache" / "models")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="pairs")
    parser.add_argument("--force", action="store_true", help="build again what is there")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parsed = parser.parse_args(argv)
    if not parsed.list and not parsed.names:
        parser.error("expected at least one NAME, or --list")
    for pair in parsed.pairs:
        if "=" not in pair:
            parser.error(f"--set: expected KEY=VALUE, got '{pair}'")
    return parsed


def main(argv=None) -> int:
    parsed = arguments(argv)
    if parsed.list:
        for row in table.ROWS:
            shown = " ".join(f"{key}={value}" for key, value in row.options.items())
            print(f"{row.name:16}{row.summary}{'  [' + shown + ']' if shown else ''}")
        return 0
    groups = {"all": [row.name for row in table.ROWS], "tests": list(pinned.ROWS)}
    names = groups.get(" ".join(parsed.names), parsed.names)
    given = dict(pair.split("=", 1) for pair in parsed.pairs)
    try:
        for name in names:
            table.find(name)
        for name in names:
            for path in fetch(name, parsed.dir, given, parsed.force):
                print(path)
    except (wheels.FetchError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0
