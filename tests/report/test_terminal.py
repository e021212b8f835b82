"""The table of a run: whole at 80 columns, honest about who judged, and why scores are missing said once."""

import io
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragparity.core.errors import Kind
from ragparity.core.outcome import Failed, Scored, Undefined
from ragparity.core.ports import Tally, Usage
from ragparity.evaluation import Finished
from ragparity.gate import Check
from ragparity.report import advice
from ragparity.report.terminal import print_finished
from ragparity.results import Summary, record

OFFLINE = "offline lexical judge: for wiring and smoke tests"


def finished(
    outcomes,
    *,
    judge="openai/m",
    metric="Faithfulness()",
    backend="native",
    up=True,
    total=None,
    threshold=None,
    price=None,
):
    """A run from outcomes by evaluator."""
    made = Finished({})
    for name, several in outcomes.items():
        made.summaries[name] = Summary(
            evaluator=name, metric=metric, backend=backend, judge=judge, higher_is_better=up, price=price,
            n_total=len(several) if total is None else total,
        )  # fmt: skip
        for row, outcome in enumerate(several):
            tally = Tally()
            if judge:
                tally.call(Usage(input_tokens=1000, output_tokens=10))
            one = record(
                row=row, id=f"row-{row}", key="k", evaluator=name, metric=metric, backend=backend, judge=judge,
                threshold=threshold, higher_is_better=up, outcome=outcome, tally=tally, seconds=0.0,
            )  # fmt: skip
            made.summaries[name].add(one)
            made.troubles.add(one)
    return made


@pytest.fixture
def printed(monkeypatch):
    def at(run, columns=None):
        if columns:
            monkeypatch.setenv("COLUMNS", str(columns))
        else:
            monkeypatch.delenv("COLUMNS", raising=False)
        file = io.StringIO()
        print_finished(run, file, folder="out")
        return file.getvalue()

    return at


def cells(text, name):
    return next(line for line in text.splitlines() if line.startswith(name)).split()


def test_a_row_says_mean_interval_and_on_how_many_rows_they_rest(printed):
    text = printed(
        finished({"faith": [Scored(1.0), Scored(0.5), Undefined("no_claims"), Failed("timeout", "60 s")]}), 80
    )
    # Mean 3/4; s/√2 = 1/4; t at 1 degree of freedom = 12.706; half the interval 3.177
    assert cells(text, "evaluator") == ["evaluator", "mean", "±", "95", "%", "scored", "undefined", "failed", "calls"]
    assert cells(text, "faith") == ["faith", "0.7500", "3.177", "2/4", "1", "1", "4"]


def test_a_wide_terminal_also_shows_metric_whole_interval_and_tokens(printed):
    text = printed(finished({"faith": [Scored(0.5), Scored(0.5)]}), 160)
    assert cells(text, "faith") == [
        "faith",
        "Faithfulness",
        "0.5000",
        "0.500",
        "…",
        "0.500",
        "2/2",
        "–",
        "–",
        "2",
        "2,000",
        "/",
        "20",
    ]


LONG = "a_very_long_evaluator_name_that_somebody_chose_for_good_reasons_of_their_own"


@pytest.mark.parametrize("columns", [60, 80, 100, 160])
@pytest.mark.parametrize("n", [1, 14])
def test_no_line_is_longer_than_the_terminal_and_no_figure_is_cut(printed, columns, n):
    several = [
        Scored(0.5),
        Undefined("missing:retrieved_contexts", "the row has no retrieved_contexts"),
        Failed("auth", "401 " * 90),
    ]
    run = finished({f"{number}{LONG}": several * 100 for number in range(n)}, threshold=0.5)
    run.checks = [Check(LONG, "mean at least", 0.5, 0.5, passed=True)]
    text = printed(run, columns)
    table = text.split("without a score")[0]
    assert max(len(line) for line in text.splitlines() if LONG not in line) <= columns
    assert table.count("100/300") == n and table.count("0.5000") == n
    assert "…" not in table.replace(" … ", "")


def test_without_a_terminal_the_lines_have_no_codes_and_no_trailing_blanks(printed):
    text = printed(finished({"faith": [Scored(0.5), Failed("auth", "401")]}))
    assert "\x1b" not in text
    assert all(line == line.rstrip() for line in text.splitlines())
    assert "Faithfulness" in text, "wide enough for the metric"


def test_in_a_narrow_table_the_metric_stands_below_where_the_name_does_not_say_it(printed):
    run = finished({"faithfulness": [Scored(1.0)], "quality": [Scored(1.0)]})
    text = printed(run, 80)
    assert "quality = Faithfulness" in text
    assert "faithfulness = " not in text


def test_columns_that_would_be_empty_are_left_out_and_others_appear(printed):
    plain = printed(finished({"e": [Scored(1.0)]}, judge=None), 160)
    for head in ("passed", "not run", "cost", "calls", "tokens"):
        assert head not in plain
    full = printed(finished({"e": [Scored(1.0)] * 3}, threshold=0.5, total=5, price=(1000.0, 0.0)), 160)
    assert "not run" in full and "passed" in full and "cost" in full
    # not run, passed, calls, tokens, and 3,000 tokens at 1,000 for a million
    assert cells(full, "e ")[-7:] == ["2", "3/3", "3", "3,000", "/", "30", "3.0000"]


def test_a_metric_where_lower_is_better_says_so(printed):
    text = printed(finished({"noise": [Scored(0.1)]}, metric="NoiseSensitivity()", up=False), 120)
    assert "NoiseSensitivity ↓" in text and "↓ lower is better" in text


def test_a_wrapped_metric_is_named_with_its_backend(printed):
    assert "ragas/Faithfulness" in printed(finished({"f": [Scored(0.1)]}, backend="ragas"), 120)


def test_nothing_scored_is_none_and_never_a_number(printed):
    text = printed(finished({"faith": [Failed("auth", "401 wrong key")] * 3}), 80)
    assert cells(text, "faith")[:4] == ["faith", "none", "–", "0/3"]
    assert "faith: no row was scored" in text


def test_every_reason_is_told_once_with_its_first_row_and_what_to_do(printed):
    outcomes = [Failed("auth", "401 wrong key")] * 3 + [
        Undefined("missing:reference", "the row has no reference"),
        Scored(1.0),
    ]
    text = printed(finished({"a": outcomes, "b": outcomes}), 100)
    assert "without a score: 8 of 10; none of them counts in a mean" in text
    assert text.count("401 wrong key") == 1 and "6 failed: auth (a, b)" in text
    assert "first in row row-0: 401 wrong key" in text
    assert "→ set a valid api_key on the llm entry; then --resume" in text
    assert "2 undefined: missing:reference (a, b)" in text
    assert "→ fill in reference, or map its column with `fields`" in text
    assert text.index("failed: auth") < text.index("undefined: missing")


def test_a_long_message_of_many_lines_is_cut_and_kept_on_the_page(printed):
    text = printed(finished({"a": [Failed("internal", "line one\nline two " + "x " * 2000)]}), 80)
    assert "line one line two" in text and len(text) < 2000


def test_many_reasons_are_counted_and_not_all_listed(printed):
    text = printed(finished({"a": [Undefined(f"odd_{number}") for number in range(20)]}), 80)
    assert "… 12 more reasons in summary.json" in text


def test_a_perfect_run_says_nothing_about_missing_scores(printed):
    assert "without a score" not in printed(finished({"a": [Scored(1.0)]}), 80)


def test_an_offline_judge_is_named_for_what_it_is(printed):
    text = printed(finished({"a": [Scored(1.0)]}, judge=f"{OFFLINE} + offline hashing embedder"), 160)
    assert f"judge: {OFFLINE}" in text and "embedder: offline hashing embedder" in text
    assert "not how good answers are" in text
    assert "not how good answers are" not in printed(finished({"a": [Scored(1.0)]}), 160)


def test_two_evaluators_with_one_judge_name_it_once(printed):
    assert printed(finished({"a": [Scored(1.0)], "b": [Scored(1.0)]}), 160).count("judge: openai/m") == 1


def test_names_and_messages_are_text_and_no_markup(printed):
    text = printed(finished({"[bold]e[/bold]": [Failed("internal", "[red]x[/red] :smile: [/]")]}), 100)
    assert "[bold]e[/bold]" in text and "[red]x[/red] :smile: [/]" in text


def test_gate_slices_and_folder_are_shown(printed):
    run = finished({"a": [Scored(1.0)]})
    run.checks = [
        Check("a", "mean at least", 0.5, 1.0, passed=True),
        Check("a", "failed rows at most", 0, 2, passed=False),
    ]
    run.slices = {"topic": {f"t{number}": run.summaries for number in range(25)}}
    text = printed(run, 100)
    assert "gate: a: mean at least 0.5, here 1.0000: passed" in text
    assert "gate: a: failed rows at most 0, here 2: FAILED" in text
    assert "topic = t0" in text and "topic = t20" not in text and "… 5 more values of topic in out/summary.json" in text
    assert "files: out" in text and "results.jsonl" in text


@given(st.text(min_size=1), st.text())
def test_whatever_a_name_or_message_holds_the_table_is_printed(name, message):
    file = io.StringIO()
    print_finished(finished({name: [Failed("internal", message)]}), file, folder="out")
    assert "without a score: 1 of 1" in file.getvalue()


# -- advice


@pytest.mark.parametrize("kind", get_args(Kind))
def test_every_kind_of_failure_has_its_advice(kind):
    assert advice.advice("failed", kind)


def test_advice_is_for_kinds_that_exist_only():
    assert set(advice.FAILED) == set(get_args(Kind))
    assert advice.advice("failed", "unheard_of") is None
