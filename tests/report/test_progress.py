"""Progress: a bar on a terminal, plain lines elsewhere, remarks alone where it is not wanted."""

import io

from ragparity.report import progress
from ragparity.report.progress import Bar, Lines, Silent, progress_for


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_stream_decides():
    assert isinstance(progress_for(io.StringIO(), wanted=True), Lines)
    assert isinstance(progress_for(io.StringIO(), wanted=False), Silent)
    assert isinstance(progress_for(Terminal(), wanted=False), Silent)
    bar = progress_for(Terminal(), wanted=True)
    assert isinstance(bar, Bar)
    bar.close()


def test_without_progress_remarks_are_still_said():
    file = io.StringIO()
    silent = progress_for(file, wanted=False)
    silent(1, 2)
    silent.say("the cache cannot be used")
    silent.close()
    assert file.getvalue() == "the cache cannot be used\n"


def test_a_log_gets_a_line_now_and_then_and_one_at_the_end(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    file = io.StringIO()
    lines = Lines(file)
    for count in range(1, 101):
        clock[0] += 0.25  # 25 seconds in all
        lines(count, 100)
    lines.close()
    assert file.getvalue().splitlines() == ["40 of 100 scores done", "80 of 100 scores done", "100 of 100 scores done"]
    assert "\r" not in file.getvalue() and "\x1b" not in file.getvalue()


def test_a_remark_stands_on_a_line_of_its_own():
    file = io.StringIO()
    lines = Lines(file)
    lines.say("the judge thinks before it answers")
    assert file.getvalue() == "the judge thinks before it answers\n"


def test_a_bar_moves_lets_remarks_through_and_takes_itself_away(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    file = Terminal()
    bar = Bar(file)
    bar(1, 4)
    bar.say("[bold]a remark[/bold]")
    bar(4, 4)
    bar.close()
    seen = file.getvalue()
    assert "[bold]a remark[/bold]" in seen
    assert "4/4" in seen
    assert seen.rpartition("\x1b[2K")[2].strip() in ("", "\x1b[?25h"), "the bar's line is erased in the end"
