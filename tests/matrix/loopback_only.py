"""Lies in every environment of the matrix: what asks for another host is refused and written down.

Python imports it at each start there. It does nothing unless REACHED names the file for what was asked for.
"""

import os
import sys

NEAR = ("127.", "::1", "localhost", "0.0.0.0")  # noqa: S104  # compared, not listened on


def watch(event, args):
    if event == "socket.connect":
        address = args[1]
        host = address[0] if isinstance(address, tuple) else ""
    elif event == "socket.getaddrinfo":
        host = args[0]
    else:
        return
    host = host.decode() if isinstance(host, bytes) else host or ""
    if host and not host.startswith(NEAR):
        with open(os.environ["REACHED"], "a", encoding="utf-8") as file:  # noqa: PTH123  # at every start: no imports
            file.write(f"{host}\n")
        raise OSError(f"{host}: only this machine may be reached here")


if os.environ.get("REACHED"):
    sys.addaudithook(watch)
