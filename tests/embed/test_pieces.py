"""Long texts in pieces: nothing is lost, nothing is too long, words stay whole."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2mad.embed._pieces import blend, cut, halve, size, unit
from r2mad.types import clean

texts = st.text(max_size=400).map(clean)
limits = st.integers(4, 120)
words = st.lists(st.text("abcé漢🙂", min_size=1, max_size=5), min_size=1, max_size=80)
blanks = st.sampled_from([" ", "\n\n", "\t", "\u2003", "  "])


@given(texts, limits)
def test_pieces_joined_again_are_the_text_without_its_white_space(text: str, limit: int) -> None:
    pieces = cut(text, limit)
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert all(size(piece) <= limit for piece in pieces)
    assert all(piece == piece.strip() != "" for piece in pieces)


@given(words, blanks, st.integers(20, 60))
def test_words_that_fit_stay_whole(parts: list[str], blank: str, limit: int) -> None:
    """No word here is longer than 20 bytes."""
    pieces = cut(blank.join(parts), limit)
    assert [word for piece in pieces for word in piece.split()] == parts


@given(words)
def test_halves_are_smaller_and_complete(parts: list[str]) -> None:
    text = " ".join(parts)
    if len(text) < 2:
        return
    left, right = halve(text)
    assert left
    assert right
    assert "".join((left + right).split()) == "".join(parts)
    assert (left + right).count("") <= len(text) + 1


def test_the_cut_is_the_white_space_nearest_to_the_middle() -> None:
    assert halve("aa bbbb cc dd ee") == ("aa bbbb", "cc dd ee")
    assert halve("a bbbbbbbbbbbbbbbbbb") == ("a", "bbbbbbbbbbbbbbbbbb")
    assert halve("bbbbbbbbbbbbbbbbbb a") == ("bbbbbbbbbbbbbbbbbb", "a")
    assert halve("abcdef") == ("abc", "def")


def test_pieces_are_of_similar_sizes() -> None:
    pieces = cut("word " * 10_001, 6000)
    assert len(pieces) == 16
    assert max(map(size, pieces)) - min(map(size, pieces)) < 20


def test_size_counts_bytes() -> None:
    assert (size("abc"), size("é"), size("漢字"), size("🙂")) == (3, 2, 6, 4)
    assert cut("漢" * 10, 9) == ["漢" * 2, "漢" * 3, "漢" * 2, "漢" * 3]


def test_a_blend_is_weighted_by_size_and_of_length_one() -> None:
    one, two = np.array([1, 0], np.float32), np.array([0, 1], np.float32)
    assert blend([(3, one), (4, two)]) == pytest.approx([0.6, 0.8])
    assert unit(np.zeros(3)).tolist() == [0, 0, 0]
    assert unit(np.array([[3.0, 4.0], [0.0, 0.0]])) == pytest.approx(np.array([[0.6, 0.8], [0, 0]]))
