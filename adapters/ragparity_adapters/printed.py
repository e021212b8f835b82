"""Objects that Python printed, read back: what is left of a document once a program has called `str` on it.

The toolkit's trajectory format keeps tool outputs as text, so a message or a list of documents arrives there as
its printed form. Only literals are read; nothing is ever called or imported.
"""

from __future__ import annotations

import ast
import io
import tokenize
from itertools import pairwise
from typing import Any

_LONGEST = 1_000_000
_FAULTS = (ValueError, SyntaxError, RecursionError, MemoryError, tokenize.TokenError)


def printed_objects(text: str) -> Any:
    """The objects in a printed dict, `Class(key=value, …)`, list of these, or `key=value key=value`; else None.

    >>> printed_objects("[Document(metadata={'source': 'a'}, page_content='Port 7443.')]")
    [{'metadata': {'source': 'a'}, 'page_content': 'Port 7443.'}]
    >>> printed_objects("content='Port 7443.' name='search' tool_call_id='c1'")
    {'content': 'Port 7443.', 'name': 'search', 'tool_call_id': 'c1'}
    >>> printed_objects("{'results': [{'page_content': 'Up.'}]}")
    {'results': [{'page_content': 'Up.'}]}
    >>> printed_objects("Port 7443.") is None
    True
    """
    shown = text.strip()
    if len(shown) > _LONGEST or "\0" in shown:
        return None
    try:
        if shown[:1] in ("{", "[") or (shown.endswith(")") and shown.partition("(")[0].isidentifier()):
            found = _value(ast.parse(shown, mode="eval").body)
        elif shown.partition("=")[0].isidentifier():
            found = _value(ast.parse(f"_({_with_commas(shown)})", mode="eval").body)
        else:
            return None
    except _FAULTS:
        return None
    if isinstance(found, list):
        return found if found and all(isinstance(one, dict) for one in found) else None
    return found if isinstance(found, dict) and found else None


def _value(node: ast.expr) -> Any:
    """A literal, a call with keywords only (as a mapping of them), or a list or mapping of such."""
    if isinstance(node, ast.Call):
        if node.args or not all(one.arg for one in node.keywords):
            raise ValueError("positional arguments")
        return {str(one.arg): _value(one.value) for one in node.keywords}
    if isinstance(node, ast.List | ast.Tuple):
        return [_value(one) for one in node.elts]
    if isinstance(node, ast.Dict):
        return {
            ast.literal_eval(key): _value(value)
            for key, value in zip(node.keys, node.values, strict=True)
            if key is not None
        }
    return ast.literal_eval(node)


def _with_commas(shown: str) -> str:
    """`a=1 b=2` as `a=1, b=2`: a name before a `=` outside all brackets begins a new pair."""
    tokens = list(tokenize.generate_tokens(io.StringIO(shown).readline))
    depth = 0
    pieces: list[tuple[int, str]] = []
    for token, following in pairwise(tokens):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(token.string, 0)
        if token.type in (tokenize.NEWLINE, tokenize.NL, tokenize.ENDMARKER):
            continue
        starts = token.type == tokenize.NAME and following.string == "=" and depth == 0
        pieces.append((token.type, f", {token.string}" if starts and pieces else token.string))
    return " ".join(piece for _, piece in pieces)
