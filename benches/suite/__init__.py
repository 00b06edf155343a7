"""The rooms of ``python -m benches``."""
