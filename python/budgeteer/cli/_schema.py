"""``budgeteer schema``: the JSON Schema of configurations."""

from __future__ import annotations

import argparse
import json

from budgeteer.cli._arguments import Commands, examples


def add(commands: Commands) -> None:
    """Add the command to the program."""
    parser = commands.add_parser(
        "schema",
        help="write the JSON Schema of configurations",
        description="Writes the JSON Schema of configurations, by which editors complete and "
        "check them. The first line\nof a configuration may be\n"
        "# yaml-language-server: $schema=budgeteer.schema.json",
        epilog=examples(
            "budgeteer schema > budgeteer.schema.json",
            "budgeteer schema | head",
        ),
    )
    parser.set_defaults(run=_run)


def _run(_: argparse.Namespace) -> str:
    from budgeteer.config import json_schema  # with all that reads configurations

    return json.dumps(json_schema(), indent=2) + "\n"
