"""What counts as the same word, how a query is read, and how hits are marked. Needs no database."""

from __future__ import annotations

import pytest

from experiments.core.search_index.normalize import ngrams, normalize, normalized_with_places
from experiments.core.search_index.words import MAX_QUERY_CHARS, parse_words
from experiments.search.results import LENGTH, snippet


@pytest.mark.parametrize(
    ("written", "normalized"),
    [
        ("Été  ÉTÉ\n\tx", "ete ete x"),
        ("e\N{COMBINING ACUTE ACCENT}te\N{COMBINING ACUTE ACCENT}", "ete"),
        ("Straße in ŁÓDŹ", "strasse in lodz"),
        ("中文字 \N{FULLWIDTH LATIN CAPITAL LETTER A}bc", "中文字 abc"),
        ("ガラス", "ガラス"),
        ("한국어", "한국어"),
        ("हिन्दी", "हिन्दी"),
        ("İstanbul Iğd\u0131r", "istanbul igdir"),
        ("tools.log('a')", "tools.log('a')"),
    ],
)
def test_capitals_accents_and_width_make_no_difference_but_letters_do(written: str, normalized: str) -> None:
    assert normalize(written) == normalized
    assert normalize(normalized) == normalized


@pytest.mark.parametrize(
    "text", ["a  b\nc", " leading", "Straße Ünïcode  中 文", "ﬁne", "", "\x1c a", "e\N{COMBINING ACUTE ACCENT}"]
)
def test_every_folded_letter_knows_where_it_comes_from(text: str) -> None:
    normalized, places = normalized_with_places(text)
    assert normalized.strip() == normalize(text)
    assert len(places) == len(normalized) + 1
    assert places == sorted(places)
    for letter, place in zip(normalized, places, strict=False):
        assert letter == " " or letter in normalize(text[place])


def test_grams_are_single_letters_and_pairs_within_words() -> None:
    assert ngrams("ab c") == {"a", "b", "c", "ab"}
    assert ngrams("") == set()


@pytest.mark.parametrize(
    ("typed", "terms"),
    [
        ("Red balls", ("red", "balls")),
        ('"Red balls" snow', ("red balls", "snow")),
        ("ball balls", ("balls",)),
        ("red red", ("red",)),
        ('say "hi', ("say", '"hi')),
        ("100% a_b", ("100%", "a_b")),
        ("中 文", ("中", "文")),
    ],
)
def test_a_query_is_words_and_phrases(typed: str, terms: tuple[str, ...]) -> None:
    assert parse_words(typed).terms == terms
    assert not parse_words(typed).problem


@pytest.mark.parametrize("typed", ["", "   ", "*", "%%", "_ * ?", '""', '" "', "\N{COMBINING ACUTE ACCENT}"])
def test_what_holds_no_word_gets_a_hint(typed: str) -> None:
    asked = parse_words(typed)
    assert not asked.terms
    assert "part of" in asked.problem
    assert not asked.refused


def test_too_much_is_refused_with_its_size() -> None:
    assert parse_words("x" * 10_000).refused
    assert f"10,000 characters, at most {MAX_QUERY_CHARS}" in parse_words("x" * 10_000).problem
    assert "17 words, at most 16" in parse_words(" ".join("abcdefghijklmnopq")).problem


def marked(text: str, *terms: str) -> str:
    return "".join(f"[{piece}]" if is_hit else piece for piece, is_hit in snippet(text, terms))


@pytest.mark.parametrize(
    ("text", "terms", "shown"),
    [
        ("A red ball", ("red",), "A [red] ball"),
        ("L'Été à la plage", ("ete",), "L'[Été] à la plage"),
        ("Straße", ("s",), "[S]tra[ß]e"),
        ("Straße", ("strass",), "[Straß]e"),
        ("in the\n    snow", ("the snow",), "in [the\n    snow]"),
        ("海滩上的龙", ("龙",), "海滩上的[龙]"),
        ("redred", ("red",), "[redred]"),
        ("abcd", ("abc", "bcd"), "[abcd]"),
        ("nothing", ("else",), "nothing"),
        ("<b>red</b>", ("red",), "<b>[red]</b>"),
    ],
)
def test_hits_are_marked_where_they_were_written(text: str, terms: tuple[str, ...], shown: str) -> None:
    assert marked(text, *terms) == shown


def test_of_a_long_text_the_part_with_the_hit_is_shown() -> None:
    shown = marked("word " * 300 + "quokka" + " word" * 300, "quokka")
    assert shown.startswith("…word")
    assert shown.endswith("word…")
    assert "[quokka]" in shown
    assert len(shown) < LENGTH + 10
