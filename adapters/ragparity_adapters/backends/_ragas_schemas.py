"""Ragas' answer schemas as they are put to the judge: the same fields, read strictly.

Ragas takes any whole number for a verdict, any number of verdicts for a list of claims, and any grade. So its
schema is rebuilt with the same names, where a verdict is yes, no or "cannot tell", a list that answers a list has
one piece for each, and a grade is one of the rubric's. An answer that does not fit is then asked again like any
other malformed one. What Ragas gets in the end is an object of its own schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, WithJsonSchema, create_model, model_validator

from ragparity.core.verdicts import read_verdict

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

Kind = Literal[
    "claims", "verdicts", "verdict", "attributions", "classes", "question", "rating", "graded", "goal", "refused",
    "in_topics", "questions", "answers", "sql", "other",
]  # fmt: skip

_KINDS: dict[frozenset[str], Kind] = {
    frozenset({"claims"}): "claims",
    frozenset({"entities"}): "claims",
    frozenset({"topics"}): "claims",
    frozenset({"keyphrases"}): "claims",
    frozenset({"questions"}): "questions",
    frozenset({"answers"}): "answers",
    frozenset({"TP", "FP", "FN"}): "classes",
    frozenset({"reason", "verdict"}): "verdict",
    frozenset({"question", "noncommittal"}): "question",
    frozenset({"rating"}): "rating",
    frozenset({"feedback", "score"}): "graded",
    frozenset({"reason", "score"}): "graded",
    frozenset({"user_goal", "end_state"}): "goal",
    frozenset({"refused_to_answer"}): "refused",
}
VERDICTS = frozenset(
    {
        "verdict", "attributed", "noncommittal", "refused_to_answer", "equivalent", "equivalence", "faithful",
        "relevance", "relevant",
    }
)  # fmt: skip
"""Fields that hold a yes or no."""
ANSWERED_LISTS = {"verdicts": "statements", "in_topics": "topics", "answers": "questions", "classes": "answer"}
"""For the kinds that answer a list: the name of that list in the question's data."""


def kind_of(model: type[BaseModel]) -> Kind:
    """What sort of answer a Ragas schema is for."""
    fields = frozenset(model.model_fields)
    if fields == {"statements"}:
        return "verdicts" if _item_model(model, "statements") else "claims"
    if fields == {"classifications"}:
        return "attributions" if _item_model(model, "classifications") else "in_topics"
    if fields & {"equivalent", "equivalence"}:
        return "sql"
    return _KINDS.get(fields, "other")


def expected_items(kind: Kind, data: Mapping[str, Any]) -> int | None:
    """How many pieces an answer of this kind owes for its data, where that is known."""
    asked = data.get(ANSWERED_LISTS.get(kind, ""))
    return len(asked) if isinstance(asked, Sequence) and not isinstance(asked, str) else None


@lru_cache(maxsize=512)
def strict(model: type[BaseModel], items: int | None = None, grades: tuple[int, ...] | None = None) -> type[BaseModel]:
    """The schema read strictly: verdicts as yes, no or "cannot tell", at least `items` pieces, one of the grades."""
    kind = kind_of(model)
    fields: dict[str, Any] = {
        name: _strict_field(kind, name, one, items, grades) for name, one in model.model_fields.items()
    }
    options: dict[str, Any] = {}
    if kind == "classes" and items is not None:
        options["__validators__"] = {"every_claim_is_classed": model_validator(mode="after")(_all_classed(items))}
    made: type[BaseModel] = create_model(model.__name__, **options, **fields)
    return made


def plain_answer(model: type[BaseModel], answer: BaseModel) -> BaseModel:
    """The answer as an object of Ragas' own schema; "cannot tell" becomes a no."""
    return model.model_validate(_numbered(model, answer))


def _numbered(model: type[BaseModel], answer: BaseModel) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, one in model.model_fields.items():
        value = getattr(answer, name)
        inner = _model_in(one.annotation)
        if inner is not None and isinstance(value, list):
            found[name] = [_numbered(inner, piece) for piece in value]
        elif isinstance(value, list):
            found[name] = [_as_wanted(_item(one.annotation), piece) for piece in value]
        else:
            found[name] = _as_wanted(one.annotation, value) if name in VERDICTS else value
    return found


def _as_wanted(annotation: Any, value: Any) -> Any:
    """A verdict in the type that a Ragas field wants: a text, a truth value or a number."""
    if value is not None and not isinstance(value, bool):
        return value
    said = bool(value)
    if annotation is bool:
        return said
    return str(int(said)) if annotation is str or get_origin(annotation) is Literal else int(said)


def _strict_field(
    kind: Kind, name: str, field: FieldInfo, items: int | None, grades: tuple[int, ...] | None
) -> tuple[Any, Any]:
    """Annotation and description of one field."""
    annotation: Any = field.annotation
    shown: dict[str, Any] = {}
    inner = _model_in(annotation)
    if name in VERDICTS:
        annotation = _verdict(annotation)
    elif kind == "graded" and name == "score" and grades:
        annotation = Annotated[int, AfterValidator(_one_of(grades))]
        shown = {"enum": list(grades)}
    elif kind == "question" and name == "question":
        annotation = Annotated[str, AfterValidator(_not_blank)]
    elif inner is not None:
        annotation = list[strict(inner)]  # type: ignore[misc]  # a schema that is made here
    elif kind in ("in_topics", "answers"):
        annotation = list[_verdict(_item(annotation))]  # type: ignore[misc]  # as above
    if items is not None and kind in ("verdicts", "in_topics", "answers"):
        annotation = Annotated[annotation, AfterValidator(_at_least(items))]
        shown = {"minItems": items, "maxItems": items}
    default = {} if field.is_required() else {"default": field.default}
    return annotation, Field(description=field.description, json_schema_extra=shown, **default)


def _verdict(annotation: Any) -> Any:
    """A yes, no or "cannot tell", shown to the judge in the type that Ragas asks for."""
    if annotation is bool:
        shown: dict[str, Any] = {"type": "boolean"}
    elif annotation is str or get_origin(annotation) is Literal:
        shown = {"type": "string", "enum": ["0", "1"]}
    else:
        shown = {"type": "integer", "enum": [0, 1]}
    return Annotated[bool | None, BeforeValidator(read_verdict), WithJsonSchema(shown)]


def _item(annotation: Any) -> Any:
    args = get_args(annotation)
    return args[0] if args else Any


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model of the pieces of a list, where the annotation is such a list."""
    item = _item(annotation) if get_origin(annotation) is list else None
    return item if isinstance(item, type) and issubclass(item, BaseModel) else None


def _item_model(model: type[BaseModel], name: str) -> type[BaseModel] | None:
    return _model_in(model.model_fields[name].annotation)


def _one_of(grades: tuple[int, ...]) -> Callable[[int], int]:
    def check(value: int) -> int:
        if value not in grades:
            raise ValueError(f"the grade {value} is not one of {', '.join(map(str, grades))}")
        return value

    return check


def _at_least(items: int) -> Callable[[list[Any]], list[Any]]:
    def check(value: list[Any]) -> list[Any]:
        if len(value) < items:
            raise ValueError(f"{len(value)} of {items} were answered; answer every one")
        return value

    return check


def _all_classed(items: int) -> Callable[[Any], Any]:
    def check(self: Any) -> Any:
        if len(self.TP) + len(self.FP) < items:
            raise ValueError(f"TP and FP hold {len(self.TP) + len(self.FP)} of the {items} statements of the answer")
        return self

    return check


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("the question is blank")
    return value
