"""What calque says can be printed, whatever a file held."""

from calque.errors import BadInput


def test_a_message_can_be_printed() -> None:
    error = BadInput("tag \x1b[31m \ud800 \u202e \0", where="a\udcff", remedy="x" * 100_000)
    told = str(error)
    assert told.startswith("a\\udcff: tag \\x1b[31m \\ud800 \\u202e \\x00 (xxx")
    assert len(told) < 2000 and told.encode("utf-8") and error.remedy == "x" * 100_000


def test_lines_of_a_message_stay() -> None:
    assert str(BadInput("two mistakes\n  one\n  für 東京")) == "two mistakes\n  one\n  für 東京"
