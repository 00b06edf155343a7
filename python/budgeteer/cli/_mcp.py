"""``budgeteer mcp``: the tools of this package for programs that speak MCP."""

from __future__ import annotations

import argparse

from budgeteer.cli._arguments import Commands, examples


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
        help="counts where a call names no model (default: gpt-4o)",
    )


def _run(arguments: argparse.Namespace) -> str:
    from budgeteer.integrations.mcp import server

    server(arguments.paths, model=arguments.model).run()
    return ""
