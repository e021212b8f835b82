"""The offline judge between two labels: by the words of what is shown, and silent where words cannot tell."""

from typing import Literal

import pytest
from pydantic import create_model

from ragparity_adapters.offline_labels import labelled

PASSAGE = "The Heron gateway uses port 7443. It is grey."
ASKED = "Which port does the Heron gateway use?"


def choice(labels, data):
    return labelled(create_model("Form", explanation=(str, ...), label=(Literal[labels], ...)))(data)["label"]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("The gateway uses port 7443.", "faithful"),
        ("The gateway uses port 9000.", "unfaithful"),  # a number that is not there
        ("The gateway uses port 7443. Bananas ripen fast.", "unfaithful"),  # every sentence counts
        ("", "unfaithful"),
    ],
)
def test_an_answer_is_faithful_where_each_of_its_sentences_is_held(said, expected):
    assert choice(("faithful", "unfaithful"), {"input": ASKED, "output": said, "context": PASSAGE}) == expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("The gateway uses port 9000.", "hallucinated"),
        ("The gateway uses port 7443.", "grounded"),
        ("I don't know.", "grounded"),  # who claims nothing invents nothing
    ],
)
def test_a_claim_that_is_nowhere_is_hallucinated_and_a_refusal_claims_nothing(said, expected):
    assert choice(("grounded", "hallucinated"), {"input": PASSAGE, "output": said}) == expected


@pytest.mark.parametrize(("field", "other"), [("context", "irrelevant"), ("document_text", "unrelated")])
def test_a_passage_is_relevant_where_it_shares_half_the_words_of_the_question(field, other):
    assert choice(("relevant", other), {"input": ASKED, field: PASSAGE}) == "relevant"
    assert choice(("relevant", other), {"input": ASKED, field: "It is grey."}) == other


@pytest.mark.parametrize(
    ("labels", "said", "expected"),
    [
        (("correct", "incorrect"), "The Heron gateway uses port 9000.", "correct"),  # words, not facts
        (("correct", "incorrect"), "Bananas.", "incorrect"),
        (("concise", "verbose"), "Port 7443.", "concise"),
        (("concise", "verbose"), "A long tale of nine things: sun, moon, sea, wind, sand, salt, rain.", "verbose"),
        (("refused", "answered"), "I don't know.", "refused"),
        (("refused", "answered"), "Port 7443.", "answered"),
    ],
)
def test_what_is_asked_of_an_answer_alone(labels, said, expected):
    assert choice(labels, {"input": ASKED, "output": said}) == expected


def test_a_request_is_complete_where_the_others_speak_of_it():
    asked = "User: Book a table for four."
    assert choice(
        ("complete", "incomplete"), {"conversation": f"{asked}\nAssistant: The table for four is booked."}
    ) == ("complete")
    assert choice(("complete", "incomplete"), {"conversation": f"{asked}\nAssistant: Which town?"}) == "incomplete"


def test_labels_that_words_cannot_tell_apart_are_not_answered():
    assert labelled(create_model("Form", explanation=(str, ...), label=(Literal["toxic", "non-toxic"], ...))) is None
    assert labelled(create_model("Form", explanation=(str, ...), label=(str, ...))) is None
