"""Tool results cut to a limit; the reference of ``rust/core/src/output``."""
