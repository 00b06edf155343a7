"""``budgeteer mcp``: the tools of this package for programs that speak MCP."""

from __future__ import annotations

import argparse
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from budgeteer.cli._arguments import Commands, examples

_INTERRUPTED = 130


def add(commands: Commands) -> None:
    """Add the command to the program."""
    mcp = commands.add_parser(
        "mcp",
        help="serve the tools ask, count and cut to a program that speaks MCP",
        description="Serves the Model Context Protocol on standard input and output until its "
        "end. The tool ask\nreads the folders and files that are named here, and nothing else.",
        epilog=examples("budgeteer mcp docs src", "budgeteer mcp -m claude-opus-5 docs"),
    )
    mcp.set_defaults(run=_run)
    mcp.add_argument(
        "paths", nargs="*", metavar="PATH", help="a folder or a file (default: no tool ask)"
    )
    mcp.add_argument(
        "-m",
        "--model",
        default="gpt-4o",
        metavar="NAME",
        help="a model, an encoding or an estimate: counts where a call names none "
        "(default: gpt-4o)",
    )


def _run(arguments: argparse.Namespace) -> str:
    from budgeteer.integrations.mcp import server

    made = server(arguments.paths, model=arguments.model)
    with _ending_at_once():
        try:
            made.run()
        except Exception as error:  # noqa: BLE001 - to raise what is in it
            raise _only(error) from None
    return ""


@contextmanager
def _ending_at_once() -> Iterator[None]:
    """Let Ctrl-C end the process: a thread that waits for standard input would hold it."""
    if threading.current_thread() is not threading.main_thread():  # which alone sets handlers
        yield
        return
    before = signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _only(error: BaseException) -> BaseException:
    """Return the one error of a group, as the server's tasks raise it."""
    inner: Sequence[BaseException] = getattr(error, "exceptions", ())
    return _only(inner[0]) if len(inner) == 1 else error
