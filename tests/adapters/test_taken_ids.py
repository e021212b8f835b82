"""Ids are told apart by their hashes: the same ids as with a dictionary of all of them."""

from hypothesis import given
from hypothesis import strategies as st

from ragparity_adapters.taken_ids import TakenIds


def with_all_ids_kept(wanted):
    taken = set()
    for one in wanted:
        given_id, number = one, 1
        while given_id in taken:
            number += 1
            given_id = f"{one}#{number}"
        taken.add(given_id)
        yield given_id


@given(st.lists(st.sampled_from(["", "a", "a#2", "a#3", "a#2#2", "b", "7", "row-1", "é", "a\ud800"])))
def test_every_row_gets_the_first_id_that_is_free(wanted):
    taken = TakenIds()
    assert [taken.given(one) for one in wanted] == list(with_all_ids_kept(wanted))


def test_many_ids_that_differ_stay_as_they_are_and_come_to_eight_bytes_each():
    taken = TakenIds()
    assert all(taken.given(f"row-{number}") == f"row-{number}" for number in range(20_000))
    assert sum(len(shelf) * shelf.itemsize for shelf in taken._shelves) == 8 * 20_000
    assert taken.given("row-19999") == "row-19999#2"


def test_one_id_for_all_rows_is_numbered_without_a_search_from_the_beginning():
    taken = TakenIds()
    assert [taken.given("same") for _ in range(5000)][-1] == "same#5000"
