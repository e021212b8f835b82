"""Every text that a metric can put into a question, found by following its code.

No metric has to say which prompts it uses, so none can forget one that it shares with others. What is found is rather
too much than too little: the texts of reasons and messages are among it.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from types import CodeType, FunctionType
from typing import Any

from pydantic import BaseModel

from ragparity.core.prompt import Prompt

DIGITS = 16
"""Hexadecimal digits of a digest."""
_NAME = re.compile(r"[A-Za-z_]\w*")


def digest(metric: type) -> str:
    """A SHA-256 over the texts of a metric's class, as 16 hexadecimal digits."""
    return hashlib.sha256(json.dumps(sorted(texts_of(metric))).encode("utf-8", "replace")).hexdigest()[:DIGITS]


def texts_of(metric: type) -> set[str]:
    """The texts that the code of a class can put into a question, and the JSON schemas of the answers.

    Followed are constants, functions and classes of the package that the class belongs to, and what every prompt says.
    """
    package = metric.__module__.rpartition(".")[0] or metric.__module__
    homes = (package, Prompt.__module__)
    found: set[str] = set()
    seen: dict[int, Any] = {}
    left: list[Any] = [metric, Prompt]
    while left:
        one = _bare(left.pop())
        if id(one) in seen:
            continue
        seen[id(one)] = one
        if isinstance(one, str):
            found.add(one)
        elif isinstance(one, Prompt):
            left += [one.task, one.rules, one.data, one.reminder, one.text]
        elif isinstance(one, Mapping):
            left += [*one, *one.values()]
        elif isinstance(one, tuple | list | set | frozenset):
            left += one
        elif isinstance(one, FunctionType) and one.__module__.startswith(homes):
            left += _used(one)
        elif isinstance(one, type) and one.__module__.startswith(homes):
            left += one.__mro__
            if issubclass(one, BaseModel):
                found.add(json.dumps(one.model_json_schema()))
            else:
                left += [value for name, value in vars(one).items() if not name.startswith("__")]
    return found


def _bare(value: Any) -> Any:
    """The function of a property, a class method or a cache; anything else as it is."""
    if isinstance(value, property):
        return value.fget
    if isinstance(value, cached_property):
        return value.func
    return inspect.unwrap(value) if callable(value) else value


def _used(function: FunctionType) -> Iterator[Any]:
    """The constants of a function but its docstring, the default values, and what its names stand for."""
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    for cell in function.__closure__ or ():
        yield cell.cell_contents
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        codes += [one for one in code.co_consts if isinstance(one, CodeType)]
        texts = [one for one in code.co_consts if one != function.__doc__]
        names = set(code.co_names)
        if "__annotations__" in names:  # a class within a function: the types of its fields are texts
            names.update(name for one in texts if isinstance(one, str) for name in _NAME.findall(one))
        yield from texts
        yield from (function.__globals__[name] for name in names if name in function.__globals__)
