"""`python -m ragparity` is the `ragparity` command."""

from ragparity.cli import start

start()
