"""One reading of a text: what the rules find, each found once."""

from legal_rag.law import (
    build_tree,
    find_amounts,
    find_courts,
    find_dates,
    find_identifiers,
    find_texts,
    read,
    read_paragraphs,
    split_sentences,
)
from legal_rag.law.outcomes import operative_part


def test_a_reading_gives_what_each_rule_finds_and_keeps_it(sample_rows):
    for row in sample_rows[:10]:
        text = row["content"]
        reading = read(text)
        assert reading.sentences == split_sentences(text)
        assert reading.dates == find_dates(text)
        assert reading.amounts == find_amounts(text)
        assert reading.identifiers == find_identifiers(text)
        assert reading.texts == find_texts(text, find_dates(text))
        assert reading.courts == find_courts(text)
        assert reading.paragraphs == read_paragraphs(text)
        assert reading.tree == build_tree(text)
        assert reading.operative == operative_part(text)
        assert reading.dates is reading.dates
        assert read(reading) is reading


def test_a_sum_is_no_article():
    text = "au visa des articles 1382 du code civil et 760 euros"
    assert [text[cited.start : cited.end] for cited in read(text).articles] == ["articles 1382 du code civil"]
