"""Format a program's failure: a traceback of the program's own lines, nothing of our machinery. Runs in the child."""

from __future__ import annotations

import linecache
import traceback

FILE_NAME = "experiment.py"
EARLIER = "earlier_experiment.py"
"""File name shown for functions that an earlier program defined."""
DENIED_HINT = (
    "The sandbox did not allow this. A program has `system`, `tools` and the installed packages, and may write files "
    "in its own folder; other files, the network, processes and devices are closed to it."
)
"""Hint added if a program was refused something by the jail."""
MISSING_HINT = (
    "A program has Python's standard library, NumPy and Pillow, and no more can be installed. Draw images with "
    "PIL.ImageDraw."
)
"""Hint added if a program wants a package that is not installed."""
ERROR_CHARS = 20_000
_FRAMES = 2_000


def show_source(program: str, name: str = FILE_NAME) -> None:
    """Let tracebacks quote the program."""
    # The entry never expires: with an mtime of None, linecache does not look for a file of this name.
    linecache.cache[name] = (len(program), None, program.splitlines(keepends=True), name)


def format_error(error: BaseException) -> str:
    """Return the traceback with only the program's frames, in at most ERROR_CHARS characters."""
    if isinstance(error, SyntaxError) and error.text is None and error.filename == FILE_NAME and error.lineno:
        error.text = linecache.getline(
            FILE_NAME, error.lineno
        )  # the compiler looks for a file; our source is in memory
    report = traceback.TracebackException.from_exception(error, limit=-_FRAMES, compact=True)
    _prune(report)
    text = "".join(report.format())
    if isinstance(error, PermissionError):
        text += f"({DENIED_HINT})\n"
    if isinstance(error, ModuleNotFoundError):
        text += f"({MISSING_HINT})\n"
    if len(text) > ERROR_CHARS:
        text = f"{text[: ERROR_CHARS // 4]}\n[…]\n{text[-ERROR_CHARS // 2 :]}"
    # A program can raise an error with unpaired surrogates, which no message can carry.
    return text.encode("utf-8", "backslashreplace").decode()


def _prune(report: traceback.TracebackException) -> None:
    # Frames of our modules would tell a program where it runs, and tell the agent nothing about its mistake.
    report.stack[:] = [frame for frame in report.stack if frame.filename in (FILE_NAME, EARLIER)]
    for other in (report.__cause__, report.__context__, *(report.exceptions or ())):
        if other is not None:
            _prune(other)
