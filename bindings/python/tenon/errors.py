# SPDX-License-Identifier: Apache-2.0
"""One exception class for each status code of libtenon; all are `TenonError`."""

from __future__ import annotations

import re

# The plugin's side of a failure: of use to who wrote it, not to who called it.
_INNER = re.compile(
    r" \(component [\w.-]+\)| \(role tenon\.[\w.-]+/1\)| \(function [\w.-]+\)"
    r"| of role tenon\.[\w.-]+/1|cannot be created \(role tenon\.[\w.-]+/1\): "
)


def for_users(message: str) -> str:
    """The message without what names the plugin's side of it."""
    return _INNER.sub("", message)


class TenonError(Exception):
    """What failed, in one line: what, where, expected, got.

    `code` is the number of the status, `domain` the component or plugin that made it, `whole` the
    text with the component, role and function of the plugin that failed.
    """

    code: int = 2
    domain: str = ""
    whole: str = ""


class Cancelled(TenonError):
    """Somebody asked the work to stop."""

    code = 1


class UnknownError(TenonError):
    """No better code was known."""

    code = 2


class InvalidArgument(TenonError, ValueError):
    """An option, an input or a file's content is not what was expected."""

    code = 3


class NotFound(TenonError, LookupError):
    """A file, a component, a name is not there."""

    code = 5


class AlreadyExists(TenonError):
    """The name is taken."""

    code = 6


class PermissionDenied(TenonError, PermissionError):
    """Not allowed here."""

    code = 7


class ResourceExhausted(TenonError, MemoryError):
    """No memory, no disk, or a limit was reached."""

    code = 8


class FailedPrecondition(TenonError):
    """Not in this state."""

    code = 9


class OutOfRange(TenonError, ValueError):
    """Past a limit."""

    code = 11


class Unimplemented(TenonError, NotImplementedError):
    """Not provided by this host, plugin or backend."""

    code = 12


class InternalError(TenonError):
    """A bug of Tenon or of a plugin; worth a report."""

    code = 13


class Unavailable(TenonError):
    """A device or a library is not there now."""

    code = 14


class DataLoss(TenonError):
    """A file is damaged or truncated."""

    code = 15


class TracedValueError(InvalidArgument, TypeError):
    """A value under trace was used where a number is needed, as in `if` or `float()`."""


class ArgumentError(InvalidArgument, TypeError):
    """An array function was given what it does not take."""


class AxisError(OutOfRange, IndexError):
    """An array has no such axis."""


_CLASSES = {
    cls.code: cls
    for cls in (
        UnknownError,
        Cancelled,
        InvalidArgument,
        NotFound,
        AlreadyExists,
        PermissionDenied,
        ResourceExhausted,
        FailedPrecondition,
        OutOfRange,
        Unimplemented,
        InternalError,
        Unavailable,
        DataLoss,
    )
}


def from_status(code: int, domain: str, message: str) -> TenonError:
    """The exception for a status; an unknown code gives `UnknownError` with that code."""
    made = _CLASSES.get(code, UnknownError)(for_users(message))
    made.code = code
    made.domain = domain
    made.whole = message
    return made
