"""Values for the kwargs without which a native metric cannot be built, and the metric built with them."""

from dataclasses import MISSING, fields

from ragparity.registry import NativeBackend

BACKEND = NativeBackend()

NEEDED = {
    "definition": "Is the answer polite?",
    "rubrics": {"score1_description": "wrong", "score2_description": "right"},
}
"""By the kwarg's name. A metric with a new required kwarg needs a line here."""


def kwargs_needed(cls):
    required = [
        one.name for one in fields(cls) if one.init and one.default is MISSING and one.default_factory is MISSING
    ]
    return {name: NEEDED[name] for name in required}


def built(cls):
    return BACKEND.build(cls.__name__, kwargs_needed(cls))
