"""
The plugin for pytest: how close each test came to its limit.

It is loaded with pytest wherever budgeteer is installed, so it imports nothing else until a test
runs under ``--budget-report``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

_NAME = "budgeteer"
_SHOWN = 20


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup(_NAME).addoption(
        "--budget-report",
        action="store_true",
        help="say how close each test came to its limit, by what budgeteer.testing.assert_fits "
        "counted",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Observe tests if the report is asked for."""
    if config.getoption("--budget-report"):
        config.pluginmanager.register(_Report(), f"{_NAME}-report")


class _Report:
    """Gathers the fullest check of each test, and prints them."""

    def __init__(self) -> None:
        self._found: list[tuple[float, str, int, int, int]] = []

    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Note each check of a test in its properties, which travel with its reports."""
        from budgeteer.testing import _fits

        checks: list[tuple[int, int]] = []
        _fits.observer = lambda tokens, limit: checks.append((tokens, limit))
        item.user_properties.append((_NAME, checks))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Read the checks of a test that ran, here or in a worker."""
        if report.when != "teardown":
            return
        for name, value in report.user_properties:
            checks: Any = value
            if name == _NAME and checks:
                fullest = max(checks, key=lambda check: check[0] / max(check[1], 1))
                share = fullest[0] / max(fullest[1], 1)
                self._found.append((share, report.nodeid, *fullest, len(checks)))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the report, the fullest first."""
        write = terminalreporter.write_line
        terminalreporter.section("budgets")
        if not self._found:
            write("No test called budgeteer.testing.assert_fits.")
            return
        found = sorted(self._found, key=lambda one: (-one[0], one[1]))
        for share, test, tokens, limit, checks in found[:_SHOWN]:
            more = f", the fullest of {checks:,} checks" if checks > 1 else ""
            write(f"{share:6.1%}  {tokens:,} of {limit:,} tokens  {test}{more}")
        if len(found) > _SHOWN:
            write(f"and {len(found) - _SHOWN:,} tests with more room")
