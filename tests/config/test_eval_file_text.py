"""YAML and JSON, variables, `file://`, `base:`, `--override`: the file before its meaning."""

from __future__ import annotations

import pytest
import yaml

from ragparity.config.problems import Problems
from ragparity.config.yamlfile import Reader, Unset, merged


def read(tmp_path, text, name="eval.yml", **more):
    for other, content in more.items():
        (tmp_path / other.replace("__", ".")).write_text(content, encoding="utf-8")
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    problems = Problems()
    return Reader(problems).file(path), [line for _, line in problems.found]


def override(tree, key, value, folder):
    problems = Problems()
    return Reader(problems).override(tree, key, value, folder), [line for _, line in problems.found]


def test_a_key_that_stands_twice_is_named_with_both_lines(tmp_path):
    _, lines = read(tmp_path, "eval:\n  evaluators:\n    f: {metric: A}\n    g: {metric: B}\n    f: {metric: C}\n")
    assert lines == [
        "eval.yml, line 5: the key 'f' stands twice in eval.evaluators, first in line 3; keep one",
    ]


def test_a_key_that_stands_twice_in_one_line_is_found_too(tmp_path):
    _, lines = read(tmp_path, "a: {b: 1, b: 2}\n")
    assert lines == ["eval.yml, line 1: the key 'b' stands twice in a, first in line 1; keep one"]


def test_a_key_beside_a_merge_is_no_repetition(tmp_path):
    tree, lines = read(tmp_path, "x: &x {a: 1, b: 2}\ny: {<<: *x, b: 3}\n")
    assert tree["y"] == {"a": 1, "b": 3}
    assert lines == []


def test_a_key_that_stands_twice_in_json_is_named(tmp_path):
    _, lines = read(tmp_path, '{"a": {"b": 1, "b": 2}}', "eval.json")
    assert lines == ["eval.json: the key 'b' stands twice in one object; keep one"]


def test_json_with_tabs_and_surrogate_pairs_is_read(tmp_path):
    tree, lines = read(tmp_path, '{\n\t"a":\t"\\ud83d\\ude00"\n}', "eval.json")
    assert tree == {"a": "\U0001f600"}
    assert lines == []


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("eval.yml", "a: 1\nb: [1\n", "eval.yml, line 3: not valid YAML: while parsing a flow sequence did not find"),
        ("eval.yml", "a: !!python/name:os.system\n", "eval.yml, line 1: not valid YAML: could not determine a constr"),
        ("eval.json", '{"a": 1,}', "eval.json, line 1: not valid JSON: "),
        ("eval.yml", "- a\n", "eval.yml: got a list; expected a mapping with `eval:` in it"),
    ],
)
def test_text_that_is_no_mapping_gets_one_line_with_its_place(tmp_path, name, text, line):
    _, lines = read(tmp_path, text, name)
    assert len(lines) == 1
    assert lines[0].startswith(line)


def test_a_file_that_is_not_utf8_says_so(tmp_path):
    path = tmp_path / "eval.yml"
    path.write_bytes("a: ü".encode("latin-1"))
    problems = Problems()
    Reader(problems).file(path)
    assert [line for _, line in problems.found] == [f"the eval file {path} is not UTF-8 (byte 3); save it as UTF-8"]


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path):
    tree, _ = read(tmp_path, "\ufeffa: 1\n")
    assert tree == {"a": 1}


def test_yes_and_no_are_booleans_and_dates_are_text(tmp_path):
    tree, _ = read(tmp_path, "a: yes\nb: off\nc: 2024-01-01\nd: 2024-01-01 10:00:00\n")
    assert tree == {"a": True, "b": False, "c": "2024-01-01", "d": "2024-01-01 10:00:00"}


def test_the_loader_of_others_keeps_its_dates(tmp_path):
    read(tmp_path, "a: 1\n")
    assert not isinstance(yaml.safe_load("2024-01-01"), str)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("k: ${N}", 8),  # unquoted: as YAML reads the value
        ("k: '${N}'", "8"),  # quoted: text
        ("k: ${EMPTY}", None),
        ("k: ${EMPTY:-7}", 7),  # the default also stands for an empty variable
        ("k: ${UNSET:-1.5}", 1.5),
        ("k: ${UNSET-x}", "x"),
        ("k: ${UNSET:-}", None),
        ("k: ${UNSET:-${N}}", 8),
        ("k: ${UNSET:-'9'}", "9"),
        ("k: ${LIST}", ["x", "y"]),
        ("k: {a: ${N}, b: ${UNSET:-z}}", {"a": 8, "b": "z"}),
        ("k: http://${HOST}:${N}/v1", "http://h:8/v1"),
        ("k: |\n  say ${HOST}\n", "say h\n"),
        ("k: ${HARD}", "a: b #c"),  # one text, although each of its signs means something to YAML
        ("k: \\${N}", "${N}"),
        ('k: "\\${N}"', "${N}"),
        ("k: $N", "$N"),
        ("# ${broken\nk: 1", 1),
        ("api_key: ${N}", "8"),  # a text whatever the variable holds
        ("model_name: ${ZEROS}", "007"),
    ],
)
def test_variables_are_filled_in(tmp_path, monkeypatch, text, value):
    for name, content in {
        "N": "8",
        "EMPTY": "",
        "LIST": "[x, y]",
        "HOST": "h",
        "HARD": "a: b #c",
        "ZEROS": "007",
    }.items():
        monkeypatch.setenv(name, content)
    monkeypatch.delenv("UNSET", raising=False)
    tree, lines = read(tmp_path, text + "\n")
    assert lines == []
    assert next(iter(tree.values())) == value
    assert type(next(iter(tree.values()))) is type(value)


def test_variables_are_filled_into_json_texts(tmp_path, monkeypatch):
    monkeypatch.setenv("N", "8")
    tree, _ = read(tmp_path, '{"a": "${N}", "b": ["x${N}"]}', "eval.json")
    assert tree == {"a": "8", "b": ["x8"]}


def test_an_unset_variable_stays_as_it_is_and_is_known(tmp_path, monkeypatch):
    monkeypatch.delenv("UNSET", raising=False)
    tree, lines = read(tmp_path, "k: ${UNSET}\nj: a${UNSET}b${UNSET}\n")
    assert tree == {"k": "${UNSET}", "j": "a${UNSET}b${UNSET}"}
    assert isinstance(tree["k"], Unset)
    assert tree["j"].names == ("UNSET",)
    assert lines == []


@pytest.mark.parametrize("text", ["${N", "${N:?no}", "${N:=5}", "${#N}", "${}"])
def test_other_forms_of_the_shell_are_refused_with_the_place(tmp_path, text):
    _, lines = read(tmp_path, f"a:\n  b: '{text}'\n")
    assert lines == [
        "a.b: '${' that begins no variable; write ${NAME} or ${NAME:-default}, or \\${ for itself",
    ]


def test_an_alias_that_leads_back_to_itself_is_refused(tmp_path):
    _, lines = read(tmp_path, "a: &x {b: *x}\n")
    assert lines == ["a.b: an alias that leads back to itself; write the value out"]


def test_a_file_reference_becomes_the_text_relative_to_its_own_file(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "p.txt").write_text("from ${sub}", encoding="utf-8")
    (tmp_path / "sub" / "base.yml").write_text("eval: {a: 'file://p.txt'}\n", encoding="utf-8")
    tree, lines = read(tmp_path, "base: sub/base.yml\neval: {b: 'file://q.md', c: ['file://q.md']}\n", q__md="Ä")
    # A text file is taken as it is, variables and all; in lists nothing is replaced, as in the toolkit.
    assert tree == {"eval": {"a": "from ${sub}", "b": "Ä", "c": ["file://q.md"]}}
    assert lines == []


def test_a_file_reference_to_code_or_to_nothing_is_refused(tmp_path):
    _, lines = read(tmp_path, "a: {b: 'file://x.py', c: 'file://x.txt'}\n", x__py="1")
    assert lines == [
        (
            "a.b: file:// puts the text of a file here, and x.py is none of .txt, .md, .j2, .jinja2, .jinja, .prompt, "
            ".tpl, .template; give the path alone"
        ),
        f"a.c: the file {tmp_path / 'x.txt'} does not exist; check the path",
    ]


def test_a_link_with_a_harmless_ending_to_code_is_refused(tmp_path):
    (tmp_path / "x.py").write_text("1", encoding="utf-8")
    (tmp_path / "x.txt").symlink_to(tmp_path / "x.py")
    _, lines = read(tmp_path, "a: 'file://x.txt'\n")
    assert lines[0].startswith("a: file:// puts the text of a file here, and x.py is none of")


def test_a_base_is_merged_key_by_key_and_may_have_a_base(tmp_path):
    tree, lines = read(
        tmp_path,
        "base: b.yml\nllms: {j: {t: 1}}\n",
        b__yml="base: c.yml\nllms: {j: {t: 0, m: b}}\nl: [1]\n",
        c__yml="llms: {j: {t: 9, m: c, u: c}, k: {}}\nl: [2, 3]\n",
    )
    assert tree == {"llms": {"j": {"t": 1, "m": "b", "u": "c"}, "k": {}}, "l": [1]}
    assert lines == []


def test_a_circle_of_bases_is_named(tmp_path):
    _, lines = read(tmp_path, "base: b.yml\n", b__yml="base: c.yml\n", c__yml="base: b.yml\n")
    assert lines == ["base: the files name each other in a circle: b.yml -> c.yml -> b.yml; remove one `base:`"]


def test_a_base_that_is_missing_or_no_path_is_named(tmp_path):
    _, lines = read(tmp_path, "base: b.yml\n")
    assert lines == [f"base: the file {tmp_path / 'b.yml'} does not exist; check the path"]
    _, lines = read(tmp_path, "base: [b.yml]\n")
    assert lines == ["base: got a list; expected the path of a file"]


def test_merging_changes_neither_side():
    base, over = {"a": {"b": 1}}, {"a": {"c": 2}}
    assert merged(base, over) == {"a": {"b": 1, "c": 2}}
    assert (base, over) == ({"a": {"b": 1}}, {"a": {"c": 2}})


@pytest.mark.parametrize(
    ("value", "read_as"),
    [
        ("Faithfulness", "Faithfulness"),
        ("3", 3),
        ("{A: {k: 1}}", {"A": {"k": 1}}),
        ("yes", True),
        ("'3'", "3"),
        ("", None),
    ],
)
def test_an_override_is_read_as_yaml(tmp_path, value, read_as):
    tree = {"eval": {"evaluators": {"x": {"metric": "A"}}}}
    changed, lines = override(tree, "eval.evaluators.x.metric", value, tmp_path)
    assert changed == {"eval": {"evaluators": {"x": {"metric": read_as}}}}
    assert tree == {"eval": {"evaluators": {"x": {"metric": "A"}}}}
    assert lines == []


def test_an_override_makes_the_mappings_on_its_way(tmp_path):
    assert override({"eval": None}, "eval.general.max_concurrency", "3", tmp_path)[0] == {
        "eval": {"general": {"max_concurrency": 3}}
    }


def test_an_override_of_a_key_made_of_digits_stays_text(tmp_path):
    assert override({}, "llms.j.api_key", "0123", tmp_path)[0] == {"llms": {"j": {"api_key": "0123"}}}


def test_an_override_may_hold_variables_and_file_references(tmp_path, monkeypatch):
    monkeypatch.setenv("KEY", "k1")
    (tmp_path / "p.txt").write_text("text", encoding="utf-8")
    assert override({}, "a.api_key", "${KEY}", tmp_path)[0] == {"a": {"api_key": "k1"}}
    assert override({}, "a.prompt", "file://p.txt", tmp_path)[0] == {"a": {"prompt": "text"}}


def test_an_override_through_something_that_is_no_mapping_is_refused(tmp_path):
    tree = {"eval": {"general": {"max_concurrency": 3}}}
    changed, lines = override(tree, "eval.general.max_concurrency.x", "1", tmp_path)
    assert changed == tree
    assert lines == [
        (
            "--override eval.general.max_concurrency.x: eval.general.max_concurrency is 3, not a mapping; "
            "set eval.general.max_concurrency itself"
        )
    ]


def test_an_override_that_is_no_yaml_or_has_an_empty_part_is_refused(tmp_path):
    assert override({}, "a..b", "1", tmp_path)[1] == [
        "--override a..b: got an empty part; expected keys with dots between them"
    ]
    (line,) = override({}, "a.b", "[1", tmp_path)[1]
    assert line.startswith("--override a.b: not valid YAML: ")
