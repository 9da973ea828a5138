"""Ids become a partition of the rows, and nothing else is kept of them."""

import math
import re
import unicodedata
from datetime import date, datetime
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cloakgp.core.errors import ArgumentError
from cloakgp.data import people
from cloakgp.data.people import ALIKE, EXACT, as_people, same_id

SAME = [
    [7, 7, 3, 7, 5],
    np.array([7, 7, 3, 7, 5]),
    np.array([7.0, 7.0, 3.0, 7.0, 5.0]),
    ["b", "b", "a", "b", "c"],
    np.array(["b", "b", "a", "b", "c"]),
    np.array(["b", "b", "a", "b", "c"], dtype=object),
    [7, "7", "03", " 7.0", 5],
    [("b", 1), ("b", 1), ("a", 2), ("b", 1), ("a", 1)],
    np.array([[7], [7], [3], [7], [5]]),
    np.array(["2020-01-02", "2020-01-02", "2020-01-01", "2020-01-02", "2020-01-03"], dtype="M8[D]"),
]


@pytest.mark.parametrize("ids", SAME, ids=lambda ids: type(ids).__name__ + str(getattr(ids, "dtype", "")))
def test_people_are_numbered_by_first_appearance_whatever_their_ids(ids):
    people = as_people(ids, 5)
    assert people.labels.tolist() == [0, 0, 1, 0, 2]
    assert people.counts.tolist() == [3, 1, 1]
    assert people.own.tolist() == [3, 3, 1, 3, 1]
    assert (people.n_people, people.n_rows, people.most_rows) == (3, 5, 3)
    assert people.digest == as_people(SAME[0], 5).digest != as_people([7, 3, 3, 7, 5], 5).digest
    assert not people.labels.flags.writeable


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ([1, 2], "must have 3 ids"),
        ("abc", "one per row"),
        (5, "one per row"),
        (np.ones((3, 2)), "one per row"),
        ([1, None, 2], "an id is missing"),
        (["a", " ", "b"], "an id is missing"),
        ([1.0, float("nan"), 2.0], "an id is missing"),
        (np.array([1.0, np.nan, 2.0]), "an id is missing"),
        (np.array(["2020-01-01", "NaT", "2020-01-01"], dtype="M8[D]"), "an id is missing"),
        (np.ma.masked_array([1, 1, 2], [False, True, False]), "an id is missing"),
        ([[1], [2], [3, 4]], "ids that can be compared"),
    ],
)
def test_what_names_nobody_is_refused(ids, said):
    with pytest.raises(ArgumentError, match=said):
        as_people(ids, 3)


ONE_PERSON = [
    [7, "007", "7.0", " 7 ", b"7", "7e0", "0.7E1", "+7", "7,0", "７", "٧", "7\u200b", "\ufeff7", "7\x00"],
    [7, 7.0, Decimal(7), Decimal("7.00"), Fraction(7), np.int8(7), np.uint64(7), np.float32(7), np.str_("7")],
    [1000, "1e3", "1E+3", "1000.", Decimal("1E+3"), np.float16(1000), b"1e3"],
    [0.1, "0.1", ".10", Decimal("0.1"), Fraction(1, 10), np.float32(0.1), np.longdouble("0.1")],
    [2**53 + 1, float(2**53 + 1), str(2**53 + 1), Decimal(2**53 + 1), np.int64(2**53 + 1)],
    [10**400, "1e400", "1" + 400 * "0", "1e999999999", math.inf, "inf", Decimal("1e999999")],
    ["José", "JOSÉ", "jose\u0301", " José ", "José".encode(), "José".encode("latin-1"), "Jo\u00adsé"],
    ["Straße", "STRASSE", "strasse"],
    ["O'Neil", "O’Neil", "O‘NEIL", "oʼneil", "O＇Neil", "O′Neil"],
    ['Ann "Nan" Lee', "Ann “Nan” Lee", "Ann „Nan‟ Lee"],
    ["Işık", "IŞIK", "ışık", "işik", "İŞİK"],
    ["Ann Lee", "ann  lee", "ANN\u00a0LEE", "Ann\tLee", "ann\r\nlee", "A\u200dnn Lee", "Ａｎｎ　Ｌｅｅ"],
    [("Ann", 7), ("ANN", "07"), (b"ann", 7.0)],
    [date(2020, 1, 2), datetime(2020, 1, 2), np.datetime64("2020-01-02", "ns"), "2020-01-02"],
    ["7", "'7", "007"],
    ["1000", "1 000", 1000],
    ["A-1", "A\u20111", "a\u20131", "A\u22121"],
    ["Ann", "A\u034fnn", "Ann\ufe0f", "\u3164Ann", "Ann\u2800"],
    ["2020-01-01", "2020-01-01 00:00:00", "2020-01-01T00:00:00", date(2020, 1, 1), datetime(2020, 1, 1)],
    [True, "true", "TRUE", 1],
]


@pytest.mark.parametrize("ids", ONE_PERSON, ids=lambda ids: repr(ids[0])[:20])
def test_one_person_is_one_however_the_id_is_written(ids):
    assert as_people([*ids, "somebody else"], len(ids) + 1).labels.tolist() == [0] * len(ids) + [1]


@pytest.mark.parametrize("ids", ONE_PERSON, ids=lambda ids: repr(ids[0])[:20])
def test_who_chooses_exact_ids_takes_them_as_they_are(ids):
    found = as_people(ids, len(ids), EXACT)
    known: dict = {}
    assert found.labels.tolist() == [known.setdefault(one, len(known)) for one in ids]
    assert found.ids == EXACT


def test_arrays_of_numbers_are_compared_as_single_numbers_are():
    huge = [2**53, 2**53 + 1, 2**54]
    for ids in (np.array(huge), np.array(huge, dtype=np.uint64), np.array(huge, dtype=object), huge):
        assert as_people(ids, 3).labels.tolist() == [0, 0, 1]
        assert as_people(ids, 3, EXACT).labels.tolist() == [0, 1, 2]


@pytest.mark.parametrize("nobody", ["\u200b", "\x00", " \u00ad ", b"", b" ", Decimal("NaN"), Decimal("sNaN")])
@pytest.mark.parametrize("how", [ALIKE, EXACT])
def test_what_has_nothing_to_read_names_nobody(nobody, how):
    with pytest.raises(ArgumentError, match="an id is missing"):
        as_people(["a", nobody], 2, how)


def test_long_and_large_numbers_take_no_time():
    """None of them is written out: the test would not end, or memory would."""
    ids = [
        "1e999999999",
        "-1e999999999",
        "1e-999999999",
        "9" * 10**6,
        "1e" + "9" * 10**6,
        Decimal("1e999999"),
    ]
    assert as_people(ids, len(ids)).n_people == 3  # beyond all doubles, on either side, and 0


WHITE = [" ", "\t", "\n", "\u00a0", "\u2003", "\u3000"]
UNSEEN = ["\u200b", "\u200d", "\ufeff", "\u00ad", "\u2066", "\x00", "\x07"]
REWRITINGS = {
    "spaces around": lambda text, draw: draw(st.sampled_from(WHITE)) + text + draw(st.sampled_from(WHITE)),
    "longer spaces": lambda text, draw: re.sub(" ", draw(st.sampled_from(WHITE)) + " ", text),
    "upper": lambda text, draw: text.upper(),
    "lower": lambda text, draw: text.lower(),
    "swapped": lambda text, draw: text.swapcase(),
    "NFC": lambda text, draw: unicodedata.normalize("NFC", text),
    "NFD": lambda text, draw: unicodedata.normalize("NFD", text),
    "NFKC": lambda text, draw: unicodedata.normalize("NFKC", text),
    "NFKD": lambda text, draw: unicodedata.normalize("NFKD", text),
    "something unseen": lambda text, draw: _put(text, draw(st.sampled_from(UNSEEN)), draw),
    "wide": lambda text, draw: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text),
}


def _put(text, unseen, draw):
    place = draw(st.integers(0, len(text)))
    return text[:place] + unseen + text[place:]


def _rewritten(text, draw):
    for how in draw(st.lists(st.sampled_from(sorted(REWRITINGS)), max_size=4)):
        text = REWRITINGS[how](text, draw)
    return text.encode() if draw(st.booleans()) else text


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


def test_marks_are_the_same_before_and_after_normalisation():
    """Else one id's two forms would be two people's: an acute accent becomes a space with an accent."""
    for mark in map(chr, people._MARKS):
        for form in ("NFC", "NFD", "NFKC", "NFKD"):
            assert same_id(f"O{mark}N") == same_id(unicodedata.normalize(form, f"O{mark}N")), ascii(mark)


@given(TEXTS, st.data())
def test_rewriting_a_text_never_splits_a_person(text, data):
    assume(same_id(text) != "")
    again = _rewritten(text, data.draw)
    assert as_people([text, again], 2).n_people == 1, (text, again)


def _written(number, draw):
    """A whole number or a decimal, in one of its ways."""
    plain = format(number, "f")
    sign, digits = ("-", plain[1:]) if plain.startswith("-") else ("", plain)
    texts = {
        "plain": plain,
        "zeros": f"{sign}000{digits}",
        "more decimals": plain + ("0" if "." in plain else ".00"),
        "exponent": f"{number * 1000:f}e-3",
        "scientific": f"{number:E}",
    }
    kinds = {"decimal": number, "fraction": Fraction(number), "float": float(number)}
    if number == int(number):
        kinds["int"] = int(number)
        if abs(number) < 2**62:
            kinds["int64"] = np.int64(int(number))
    name = draw(st.sampled_from([*texts, *kinds]))
    return _rewritten(texts[name], draw) if name in texts else kinds[name]


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20), st.data())
def test_rewriting_a_number_never_splits_a_person(number, data):
    with localcontext() as context:
        context.prec = 200
        ids = [_written(number, data.draw) for _ in range(4)]
    assert as_people(ids, 4).n_people == 1, ids


@given(TEXTS)
def test_what_an_id_becomes_stays_what_it_is(text):
    assert same_id(same_id(text)) == same_id(text)


def test_values_of_pyarrow_are_ids_like_others():
    import pyarrow

    for ids in (
        pyarrow.array(["Ann", "ANN", "7", "007"]),
        pyarrow.chunked_array([["Ann", "ANN"], ["7", "007"]]),
    ):
        assert as_people(ids, 4).labels.tolist() == [0, 0, 1, 1]


def test_what_has_no_row_for_each_id_is_refused():
    import pandas as pd

    frame = pd.DataFrame({"a": [1, 1], "b": [2, 2]})
    for ids in ({0: "Ann", 1: "Ann"}, {"Ann", "Bob"}, frame):
        with pytest.raises((ArgumentError, TypeError)):
            as_people(ids, 2)
