"""Runs the command line: ``python -m budgeteer``."""

import sys

from budgeteer.cli import main

if __name__ == "__main__":
    sys.exit(main())
