"""What `list` and `explain` say of every metric."""

import io

import pytest

from ragparity import catalogue, wiring
from ragparity.core.errors import UnknownBackend, UnknownMetric

NATIVE = wiring.backend("native")


@pytest.mark.parametrize("name", NATIVE.names())
def test_every_native_metric_has_a_card_that_says_what_it_is(name):
    card = catalogue.card(name)
    assert card.startswith(name)
    for part in ("Reads:", "Asks:", "Range:", "Undefined when:", "Source:"):
        assert part in card, part


def test_a_card_is_found_by_alias_in_any_case_and_names_aliases_and_settings():
    card = catalogue.card("RESPONSERELEVANCY")
    assert card.startswith("AnswerRelevancy (also ResponseRelevancy, answer_relevancy), version ")
    assert "Settings:\n  strictness" in card and "= 3" in card
    assert catalogue.card("native/Faithfulness") == catalogue.card("faithfulness")


def test_an_unknown_name_gets_a_hint():
    with pytest.raises(UnknownMetric, match=r"Did you mean Faithfulness\?"):
        catalogue.card("Faithfullness")
    with pytest.raises(UnknownBackend, match=r"Did you mean native\?"):
        catalogue.card("nativ/Faithfulness")


def test_the_list_has_a_line_for_every_native_metric_with_fields_calls_and_range():
    lines = {row[1]: row for row in catalogue.rows("native")}
    assert set(lines) == set(NATIVE.names())
    assert lines["ExactMatch"] == ("native", "ExactMatch", "response, reference", "nothing", "0 to 1")
    assert "user_input?" in lines["ContextRecall"][2], "a question mark stands after what is read only where present"
    assert lines["AnswerRelevancy"][4] == "-1 to 1"
    assert lines["NoiseSensitivity"][3].endswith("(one more each per further 10 claims)"), "the whole of what is asked"


def test_an_unknown_backend_cannot_be_listed():
    with pytest.raises(UnknownBackend):
        list(catalogue.rows("nativ"))


@pytest.mark.parametrize("columns", ["80", "160"])
def test_the_list_fits_its_terminal_and_names_every_metric_whole(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    file = io.StringIO()
    catalogue.print_list(file, "native")
    text = file.getvalue()
    assert max(len(line) for line in text.splitlines()) <= int(columns)
    first_words = [line.split()[0] for line in text.splitlines() if line.strip()]
    assert set(NATIVE.names()) <= set(first_words)


def test_the_line_that_a_framework_is_missing_is_not_counted_as_a_metric(monkeypatch):
    listed = [("far", catalogue.UNUSABLE, "it is not installed", "", ""), *(("far", name, "", "", "") for name in "AB")]
    monkeypatch.setattr(catalogue, "rows", lambda _name: iter(listed))
    file = io.StringIO()
    catalogue.print_list(file, "far")
    assert file.getvalue().startswith("far: 2 metrics\n")
    assert "it is not installed" in file.getvalue()
