"""Corners of Unicode, by name: all that reads text, or divides it into pieces, is given each of them."""

CORNERS: dict[str, tuple[str, ...]] = {
    "combining marks": ("\u0301", "a\u0301", "x\u0302", "\u0e33", "ก\u0e34น", "नमस्ते", "\u1112\u1161\u11ab"),
    "right to left": ("\u05d0\u05d1", "\u0627\u0644\u0639", "ﷺ", "\u200f", "\u202e", "\u2066"),
    "joiners": ("\u200d", "\u200c", "\u200b", "\u2060", "\u00ad", "क\u094d\u200dष"),
    "halves": ("\ud800", "\udc00", "\ude00\ud83d"),
    "emoji": (
        "\U0001f469\u200d\U0001f467",  # a family
        "\U0001f1e9\U0001f1ea",  # a flag
        "\U0001f44d\U0001f3fd",  # a thumb with its skin
        "1\ufe0f\u20e3",  # a key
        "\u2764\ufe0f",
        "\U0001f3f4\U000e0067\U000e0062\U000e007f",  # a flag of tags
    ),
    "CRLF": ("\r\n", "\r\r\n"),
    "line ends that are none": ("\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"),
    "BOM": ("\ufeff", "\ufffe"),
    "NUL": ("\0",),
    "control characters": ("\x1b[31m", "\x1f", "\x7f"),
    "spaces": (" ", "  ", "\t", "\n", "\n\n", "\u00a0", "\u3000"),
    "no characters": ("\uffff", "\U0010ffff"),
    "letters that change": ("ﬁ", "ß", "İ", "ı", "ǅ", "２", "٣", "²", "½"),
    "scripts": ("한", "ไทย", "東京"),
    "marks of pieces": ("▁", "Ġ", "##a", "</s>", "<mask>", "[SEP]"),
}
#: All of them but halves, which no text holds that is sound.
WHOLE = [odd for name, held in CORNERS.items() if name != "halves" for odd in held]
