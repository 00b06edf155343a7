"""Tool results cut to a limit, and still valid."""
