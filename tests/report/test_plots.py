"""What the plots show: the numbers that were compared, in their places, and in words why there are none."""

import itertools

import numpy as np
import pytest
from tests.sides import compared, people, side
from tests.toys import SHARE, STRANGE, WHOLE

pytest.importorskip("matplotlib", reason="needs the extra stats")

from ragparity.report.plots import backends, canvas, marks, pairs
from ragparity.report.plots import people as labelled
from ragparity.report.plots.canvas import FONT_PT, number, shown, style

LEFT = [0.0, 0.25, 0.5, 1.0, 0.75, None, None]
RIGHT = [0.25, 0.25, 0.75, 0.5, None, 0.0, None]
"""Four rows that both have scored, one that left alone has, one that right alone has, one that nobody has."""


@pytest.fixture(autouse=True)
def _in_the_style_of_all_plots():
    with style(["faith"]):
        yield


def artist(axes, label):
    (found,) = [one for one in axes.get_children() if one.get_label() == label]
    return found


def labels_in(axes):
    return [one.get_label() for one in axes.get_children()]


def places(axes):
    """Where the rows stand, to two decimals."""
    return sorted(map(tuple, np.round(np.asarray(artist(axes, "rows").get_offsets()), 2).tolist()))


def texts(figure):
    return " ".join(" ".join(one.get_text().split()) for one in figure.findobj(lambda one: hasattr(one, "get_text")))


def panels(figure):
    return [one for one in figure.axes if one.get_label().isdigit()]


# -- two backends


def test_a_point_is_a_row_that_both_scored_and_the_others_are_ticks_outside_and_no_zeros():
    figure = pairs.scatter(compared(side("left", LEFT), side("right", RIGHT)), "faith", 0.1)
    (axes,) = panels(figure)
    assert places(axes) == [(0.0, 0.25), (0.25, 0.25), (0.5, 0.75), (1.0, 0.5)]
    (tick,) = artist(axes, "unscored x").get_segments()
    assert tick[:, 0].tolist() == [0.75, 0.75] and tick[:, 1].max() < 0, "left alone says 0.75: below, outside"
    (tick,) = artist(axes, "unscored y").get_segments()
    assert tick[:, 1].tolist() == [0.0, 0.0] and tick[:, 0].max() < 0, "right alone says 0: left, outside"
    assert axes.get_title(loc="left").splitlines()[-1] == "n = 4 (2 without left, 2 without right)"
    assert "A row that neither side has scored is among those without the one and without the other" in texts(figure)
    # the means of the four: 1.75/4 and 1.75/4
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("left, mean 0.44", "right, mean 0.44")


def test_the_band_holds_the_differences_within_the_tolerance_and_ends_with_the_scores():
    (axes,) = panels(pairs.scatter(compared(side("left", LEFT), side("right", RIGHT)), "faith", 0.2))
    band = artist(axes, "tolerance").get_paths()[0]
    inside = [(0.5, 0.69), (0.5, 0.31), (0.01, 0.2), (0.99, 0.81)]
    outside = [(0.5, 0.71), (0.5, 0.29), (0.0, -0.1), (0.0, 0.21), (1.0, 1.1)]
    assert band.contains_points(inside).all() and not band.contains_points(outside).any()
    assert artist(axes, "identity").get_xydata().tolist() == [[0, 0], [1, 1]]


def test_concordance_stands_above_one_definition_and_rank_correlation_above_near_ones():
    left, right = side("left", [0, 0.25, 0.5, 1.0]), side("right", [0.25, 0.25, 0.75, 1.0], declared=WHOLE)
    near = compared(left, right)
    same = compared(left, side("right", [0.25, 0.25, 0.75, 1.0]))
    (axes,) = panels(pairs.scatter(same, "faith", 0.1))
    assert axes.get_title(loc="left").startswith(f"CCC {number(same.pairs[0].agreement['ccc'].value)} (")
    figure = pairs.scatter(near, "faith", 0.1)
    (axes,) = panels(figure)
    assert axes.get_title(loc="left").startswith(f"ρ {number(near.pairs[0].agreement['spearman'].value)} (")
    assert "tolerance" not in labels_in(axes) and "identity" in labels_in(axes)
    assert "only the order of scores is compared" in texts(figure)


def test_rows_with_the_same_two_scores_are_fanned_out_and_one_of_them_stands_on_the_place():
    x, y = marks.fanned_out(np.array([1.0] * 7 + [0.5]), np.array([0.5] * 7 + [0.5]), (1.0, 2.0), 0.05)
    assert (x[0], y[0]) == (1.0, 0.5) and (x[7], y[7]) == (0.5, 0.5)
    off = np.hypot(x[:7] - 1.0, (y[:7] - 0.5) / 2)  # the second axis is twice as long
    assert off.max() <= 0.05 + 1e-12
    apart = [np.hypot(x[a] - x[b], (y[a] - y[b]) / 2) for a, b in itertools.combinations(range(7), 2)]
    assert min(apart) > 0.01, "no two hide each other"
    again = marks.fanned_out(np.array([1.0] * 7 + [0.5]), np.array([0.5] * 7 + [0.5]), (1.0, 2.0), 0.05)
    assert (x == again[0]).all() and (y == again[1]).all()


def test_a_fan_stays_nearer_to_its_level_than_to_the_next():
    scores = [0.0, 0.25, 0.5, 0.75, 1.0] * 40
    (axes,) = panels(pairs.scatter(compared(side("left", scores), side("right", scores)), "faith", 0.1))
    offsets = np.asarray(artist(axes, "rows").get_offsets())
    assert len(offsets) == 200 and np.abs(offsets - np.round(offsets * 4) / 4).max() < 0.125


def test_many_rows_of_few_levels_are_circles_with_their_numbers():
    scores = [0.0] * 100 + [0.5] * 250 + [1.0] * 50
    (axes,) = panels(pairs.scatter(compared(side("left", scores), side("right", scores)), "faith", 0.1))
    assert places(axes) == [(0, 0), (0.5, 0.5), (1, 1)]
    assert sorted(int(one.get_text()) for one in axes.texts) == [50, 100, 250]
    areas = artist(axes, "rows").get_sizes()
    assert areas[1] / areas[0] == pytest.approx(2.5) and areas[1] / areas[2] == pytest.approx(5)


def test_many_rows_of_many_scores_are_hexagons_that_hold_all_of_them():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    axes.set(xlim=(0, 1), ylim=(0, 1))
    at = np.linspace(0, 1, 100_000)
    assert marks.draw_rows(axes, at, at[::-1], levels=False) == marks.HEXAGONS
    assert artist(axes, "rows").get_array().sum() == 100_000


def test_many_rows_without_a_score_are_numbers_at_their_scores():
    scores = [0.0] * 20 + [1.0] * 30
    found = compared(side("left", [*scores, 0.5]), side("right", [*[None] * 49, 1.0, 0.5]))
    (axes,) = panels(pairs.scatter(found, "faith", 0.1))
    written = {one.get_text(): one.get_position() for one in axes.texts}
    assert set(written) == {"20", "29"}
    assert [written["20"][0], written["29"][0]] == [0.0, 1.0] and max(at for _, at in written.values()) < 0


def test_difference_against_level_has_the_lines_of_the_agreement():
    found = compared(side("left", [0.1, 0.5, 0.9, 0.3, 1.0, 0.72]), side("right", [0.2, 0.3, 0.8, 0.1, 0.65, 0.7]))
    agreement = found.pairs[0].agreement
    (axes,) = panels(pairs.bland_altman(found, "faith"))
    # a − b of −.1, .2, .1, .2, .35, .02 at the means .15, .4, .85, .2, .825, .71
    assert places(axes) == [(0.15, -0.1), (0.2, 0.2), (0.4, 0.2), (0.71, 0.02), (0.82, 0.35), (0.85, 0.1)]
    assert artist(axes, "bias").get_ydata()[0] == agreement["mean_diff"].value == pytest.approx(0.77 / 6)
    ends = sorted(one.get_ydata()[0] for one in axes.lines if one.get_label() == "limit")
    assert ends == [agreement.limits.low, agreement.limits.high]
    low, high = (
        artist(axes, "bias interval").get_y() + share for share in (0, artist(axes, "bias interval").get_height())
    )
    assert (low, high) == pytest.approx(agreement["mean_diff"].interval)
    (left, right), (below, above) = artist(axes, "slope").get_data()
    assert (above - below) / (right - left) == pytest.approx(agreement["slope"].value)
    title = axes.get_title(loc="left").splitlines()
    assert (
        title[0].startswith("bias +0.13 (") and title[1].endswith("(mean ± 1.96 SD)") and title[2].startswith("slope ")
    )


def test_limits_of_few_levels_are_the_empirical_ones_and_said_to_be():
    found = compared(side("left", [0, 0.5, 1, 1, 0.5]), side("right", [0, 0.5, 0.5, 1, 1]))
    assert found.pairs[0].agreement.limits.kind == "empirical"
    figure = pairs.bland_altman(found, "faith")
    assert "(empirical)" in texts(figure) and "2.5 % and 97.5 % points" in texts(figure)
    assert "empirical" not in texts(
        pairs.bland_altman(compared(side("a", np.linspace(0, 1, 9)), side("b", np.linspace(0.1, 1, 9))), "faith")
    )


def test_no_differences_are_drawn_where_the_definitions_are_not_the_same_and_it_says_why():
    figure = pairs.bland_altman(compared(side("left", LEFT), side("right", RIGHT, declared=WHOLE)), "faith")
    (axes,) = panels(figure)
    assert "rows" not in labels_in(axes)
    assert "left – right: no differences are taken. Both tell of groundedness" in texts(figure)


def test_all_panels_of_differences_have_one_scale():
    found = compared(side("a", [0, 0.5, 1, 0.3]), side("b", [0, 0.5, 1, 0.2]), side("c", [1, 0, 0, 0.9]))
    assert len({one.get_ylim() for one in panels(pairs.bland_altman(found, "faith"))}) == 1


def test_what_only_shares_a_name_is_not_drawn_unless_it_is_forced():
    sides = side("left", LEFT), side("right", RIGHT, declared=STRANGE)
    figure = pairs.scatter(compared(*sides), "faith", 0.1)
    assert "left – right: not compared. They only share a name" in texts(figure)
    (axes,) = panels(pairs.scatter(compared(*sides, force=True), "faith", 0.1))
    assert axes.get_title(loc="left").startswith("ρ ")


def test_scores_are_drawn_as_they_were_compared():
    other = type(SHARE)(
        estimand="share of wrong claims", construct=SHARE.construct, unit="claim", higher_is_better=False
    )
    stars = side("stars", [1, 5, 2], declared=other, bounds=(1.0, 5.0))
    figure = pairs.scatter(compared(side("left", [1.0, 0.0, 0.5]), stars), "faith", 0.1)
    (axes,) = panels(figure)
    # one star of one to five is 0 of the range, and mirrored 1
    assert places(axes) == [(0.0, 0.0), (0.5, 0.75), (1.0, 1.0)]
    assert "The ranges differ" in texts(figure) and "stars counts the other way round" in texts(figure)


def test_a_score_beyond_the_bounds_is_in_the_picture():
    found = compared(
        side("left", [1, 2, 3, 9], bounds=(-np.inf, np.inf)), side("right", [1, 3, 2, None], bounds=(-np.inf, np.inf))
    )
    (axes,) = panels(pairs.scatter(found, "faith", 0.1))
    assert axes.get_xlim()[1] > 9
    assert artist(axes, "unscored x").get_segments()[0][0, 0] == 9


# -- all backends


def test_a_curve_is_the_share_of_rows_up_to_each_score():
    figure = backends.ecdf(compared(side("left", [0.5, 0.0, 1.0, 0.5, None]), side("right", [1.0] * 5)), "faith")
    (axes,) = panels(figure)
    first, second = axes.lines
    assert first.get_drawstyle() == "steps-post"
    # of 0, .5, .5, 1: a quarter is at most 0, three quarters at most .5
    assert {0.0: 0.25, 0.5: 0.75, 1.0: 1.0}.items() <= dict(first.get_xydata().tolist()).items()
    assert first.get_label() == "left: n = 4 of 5, mean 0.50" and second.get_label() == "right: n = 5, mean 1.00"
    assert first.get_color() != second.get_color() and first.get_linestyle() != second.get_linestyle()


def test_curves_of_different_ranges_are_shares_and_all_point_one_way():
    other = type(SHARE)(
        estimand="share of wrong claims", construct=SHARE.construct, unit="claim", higher_is_better=False
    )
    found = compared(side("left", [0.0, 1.0]), side("stars", [5, 5, 2, 1], declared=other, bounds=(1.0, 5.0)))
    figure = backends.ecdf(found, "faith")
    points = dict(panels(figure)[0].lines[1].get_xydata().tolist())
    assert {0.0: 0.5, 0.75: 0.75, 1.0: 1.0}.items() <= points.items()
    assert "The ranges differ" in texts(figure) and "stars counts the other way round" in texts(figure)


def test_a_curve_of_many_scores_has_a_bounded_number_of_steps():
    values = np.random.default_rng(0).random(20_000)
    at, shares = backends._steps(values, -0.1, 1.1)
    assert len(at) <= backends.MOST_STEPS + 2 and (shares[0], shares[-1]) == (0.0, 1.0)
    middle = np.searchsorted(at, 0.5)
    assert shares[middle - 1] == pytest.approx(0.5, abs=0.01)


def test_the_heat_map_holds_concordance_or_ranks_and_words_where_there_is_neither():
    found = compared(
        side("left", [0, 0.25, 0.5, 1.0]), side("right", [0.25, 0.25, 0.75, 1.0]),
        side("whole", [0.0, 0.5, 0.5, 1.0], declared=WHOLE), side("stranger", [1.0, 0, 1, 0], declared=STRANGE),
        side("constant", [1.0] * 4),
    )  # fmt: skip
    figure = backends.heat_map(found, "faith")
    (axes,) = panels(figure)
    cells = artist(axes, "agreement").get_array()
    by_pair = {(one.a, one.b): one.agreement for one in found.pairs}
    assert cells[0, 0] == by_pair["left", "right"]["ccc"].value
    assert cells[1, 0] == by_pair["left", "whole"]["spearman"].value
    assert np.ma.getmaskarray(cells)[2:].all(), "a stranger is not compared; constant scores have no concordance"
    written = [" ".join(one.get_text().split()) for one in axes.texts]
    assert f"CCC {number(cells[0, 0])} n = 4" in written and f"ρ {number(cells[1, 0])} n = 4" in written
    assert written.count("not compared") == 4
    assert "CCC undefined: constant scores n = 4" in written and "ρ undefined: constant scores n = 4" in written
    assert [one.get_text() for one in axes.get_yticklabels()] == ["right", "whole", "stranger", "constant"]
    assert sum(bool(one.get_hatch()) for one in axes.collections if hasattr(one, "get_hatch")) == 4


def test_repetitions_put_each_backend_with_itself_on_the_diagonal():
    steady = [[1.0, 1.0], [0.5, 0.5], [0.0, 0.0], [0.25, 0.25]]
    noisy = [[1.0, 0.0], [0.5, 0.5], [0.0, 0.5], [0.25, 0.25]]
    found = compared(side("left", steady), side("right", noisy))
    figure = backends.heat_map(found, "faith")
    cells = artist(panels(figure)[0], "agreement").get_array()
    assert cells[0, 0] == pytest.approx(1.0) and cells[1, 1] == found.retests["right"].ccc.value
    assert cells[1, 0] == found.pairs[0].agreement["ccc"].value and np.ma.getmaskarray(cells)[0, 1]
    assert "itself 1.00" in texts(figure)


# -- people

HUMAN = [1, 1, 1, 1, 0, 0, 0, 0]
JUDGE = [0.9, 0.8, 0.6, 0.2, 0.7, 0.3, 0.1, 0.0]


def test_the_area_under_the_curve_is_the_auroc_and_the_dot_is_the_threshold():
    found = compared(side("left", JUDGE, threshold=0.5), labels=people(HUMAN))
    one = found.people.judges["left"]
    axes, _ = panels(labelled.against_labels(found.people, "faith"))
    (curve,) = [line for line in axes.lines if line.get_label().startswith("left")]
    wrong, right = curve.get_data()
    assert (wrong[0], right[0], wrong[-1], right[-1]) == (0, 0, 1, 1)
    # Of 16 pairs of a good and a bad row, .9, .8 win all four, .6 loses to .7, .2 loses to .7 and .3.
    area = (np.diff(wrong) * (right[1:] + right[:-1]) / 2).sum()
    assert area == pytest.approx(one.estimates["auroc"].value) == pytest.approx(13 / 16)
    (dot,) = [line for line in axes.lines if line.get_marker() == "o"]
    assert dot.get_xydata().tolist() == [[0.25, 0.75]], "from 0.5 on, one of four bad and three of four good rows pass"


def test_tied_scores_are_one_step_of_the_curve():
    wrong, right = labelled.roc_curve(np.array([1.0, 1, 0.5, 0.5, 0]), np.array([True, False, True, False, False]))
    assert wrong.tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1]) and right.tolist() == pytest.approx([0, 0.5, 1, 1])


def test_the_table_counts_rows_by_what_people_say():
    found = compared(side("left", JUDGE, threshold=0.5), labels=people(HUMAN))
    _, axes = panels(labelled.against_labels(found.people, "faith"))
    assert artist(axes, "shares").get_array().tolist() == [[0.75, 0.25], [0.25, 0.75]]
    assert [one.get_text() for one in axes.texts] == ["3\n75 %", "1\n25 %", "1\n25 %", "3\n75 %"]
    assert "from 0.5 on" in axes.get_xlabel()
    assert axes.get_title(loc="left").startswith("left\nbalanced accuracy 0.75")


def test_a_judge_of_which_less_is_better_passes_up_to_its_threshold():
    other = type(SHARE)(
        estimand="share of wrong claims", construct=SHARE.construct, unit="claim", higher_is_better=False
    )
    judge = side("left", [1 - one for one in JUDGE], declared=other, threshold=0.5)
    axes, table = panels(labelled.against_labels(compared(judge, labels=people(HUMAN)).people, "faith"))
    assert "up to 0.5" in table.get_xlabel()
    assert table.texts[0].get_text() == "3\n75 %"
    assert axes.get_legend().get_texts()[0].get_text().startswith("left 0.81")


def test_grades_are_points_of_label_and_score():
    found = compared(side("left", [0.0, 0.5, 1.0, None, 0.25]), labels=people([1, 3, 4, 2, None]))
    figure = labelled.against_labels(found.people, "faith")
    (axes,) = panels(figure)
    assert places(axes) == [(0.0, 0.0), (0.5, 0.5), (0.75, 1.0)]
    assert artist(axes, "unscored x").get_segments()[0][0, 0] == 0.25, "two of one to five, without a score"
    assert artist(axes, "unscored y").get_segments()[0][0, 1] == 0.25, "a score without a label"
    assert axes.get_title(loc="left").splitlines()[1] == "n = 3 (1 without score, 1 without label)"


def test_several_annotators_of_good_and_bad_are_one_verdict_a_row():
    found = compared(side("left", JUDGE), labels=people(HUMAN, [*HUMAN[:4], 1, 0, 0, 0]))
    figure = labelled.against_labels(found.people, "faith")
    assert len(panels(figure)) == 2 and "scores against people (human, second)" in texts(figure)


# -- what cannot be shown, and names

ODD = {
    "constant": ([1.0] * 5, [0.1, 0.5, 0.3, 0.7, 1.0], [1.0] * 5),
    "nothing": ([None] * 5, [0.1, 0.5, 0.3, 0.7, 1.0], [None] * 5),
    "no common row": ([0.5, 1, 0.2, None, None], [None, None, None, 0.1, 0.9]),
    "two rows": ([0.5, 1.0], [0.2, 0.9]),
    "no row": ([], []),
    "six": tuple([(at * step) % 1 for at in range(6)] for step in (0.1, 0.3, 0.7, 0.9, 1.3, 1.7)),
}


def every_plot(found):
    return [
        pairs.scatter(found, "faith", 0.1), pairs.bland_altman(found, "faith"), backends.ecdf(found, "faith"),
        backends.heat_map(found, "faith"), labelled.against_labels(found.people, "faith"),
    ]  # fmt: skip


@pytest.mark.parametrize("scores", ODD.values(), ids=ODD)
def test_every_plot_says_in_words_what_it_cannot_show(scores):
    labels = people([1, 0, 1, 0, 1][: max(1, len(scores[0]))])
    found = compared(*(side(f"backend_{at}", one) for at, one in enumerate(scores)), labels=labels)
    figures = every_plot(found)
    for figure in figures:
        figure.set_dpi(30)
        figure.canvas.draw()  # a warning is an error here
    for one, axes in zip(found.pairs, panels(figures[0]), strict=True):
        assert ("no row has a score on both sides" in [text.get_text() for text in axes.texts]) is (one.n == 0)
        ccc = one.agreement["ccc"]
        said = axes.get_title(loc="left").splitlines()[0]
        assert said.startswith("CCC undefined: " if ccc.value is None else f"CCC {number(ccc.value)}")


NAMES = ["$x_1$", r"\frac{a}", "a_b^c", "<b>&amp;", "100 %", "{brace}"]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_shown_as_it_is_and_not_read_as_mathematics(name):
    figure = pairs.scatter(compared(side(name, LEFT), side("right", RIGHT)), shown(name), 0.1)
    assert panels(figure)[0].get_xlabel() == f"{name}, mean 0.44"
    figure.canvas.draw()
    assert not any(one.get_parse_math() for one in figure.findobj(lambda one: hasattr(one, "get_parse_math")))


@pytest.fixture
def bundled_fonts(monkeypatch):
    """Only the fonts that come with matplotlib are installed; gives the characters of one of them."""
    from matplotlib import font_manager, get_data_path

    bundled = [one for one in font_manager.fontManager.ttflist if one.fname.startswith(get_data_path())]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", bundled)
    canvas._font_with.cache_clear()
    yield {one.name: canvas._characters_of(one.fname) for one in bundled}
    canvas._font_with.cache_clear()


def test_names_are_one_line_of_bounded_length():
    assert shown("two\nlines\x07 and\ttabs") == "two lines and tabs"
    long = shown("faithfulness_of_the_answer_to_the_retrieved_contexts_v2", 20)
    assert len(long) == 20 and long.startswith("faithfulne") and long.endswith("exts_v2")
    assert shown("\ud800 half").endswith("half")


def test_a_character_that_another_font_has_is_shown_and_one_that_none_has_is_a_box(bundled_fonts):
    ours, other = bundled_fonts[canvas.FONT], bundled_fonts["STIXGeneral"]
    lent = next(one for one in map(chr, sorted(other - ours)) if one.isprintable() and not one.isspace())
    assert shown(f"{lent} 忠実") == f"{lent} {canvas.ABSENT * 2}"
    with style([lent]):
        figure = pairs.scatter(compared(side(lent, LEFT), side("right", RIGHT)), "faith", 0.1)
        figure.canvas.draw()  # a missing character would be a warning, and so an error
    assert panels(figure)[0].get_xlabel().startswith(lent)


def test_every_text_has_one_size():
    found = compared(side("left", JUDGE), side("right", JUDGE[::-1]), labels=people(HUMAN))
    for figure in every_plot(found):
        figure.canvas.draw()
        sizes = {
            one.get_fontsize() for one in figure.findobj(lambda one: hasattr(one, "get_fontsize")) if one.get_text()
        }
        assert sizes == {FONT_PT}
