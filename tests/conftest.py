"""Settings of all tests."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("busy", deadline=None)  # two cores are shared; how long one example takes is no fact
settings.load_profile("busy")
