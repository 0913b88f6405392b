"""What a language model is pretrained on: text, translations beside it, and words that may replace others."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from calque.errors import BadInput, BadSetting
from calque.pipeline.measuring.parallel import WHOLE, ParallelText
from calque.pipeline.runs import input_digests
from calque.pretrain.switching import Weighted
from calque.text.bitext import read_bitext, read_sentences
from calque.text.dictionaries import languages_of, read_dictionary
from calque.text.distinct import Distinct
from calque.text.languages import check_language
from calque.text.readers import dataset_texts, is_dataset
from calque.text.words import tokenise_all
from calque.text.world import world_pairs, world_sentences
from calque.types import Bitext, Sentences, Vocabulary

#: Draws of the world for pretraining begin here, so that bitexts drawn with small seeds are other text.
WORLD_SEED = 1000
#: Languages that a draw has room for; behind them are those for scores, dictionaries and pairs.
PLACES = 100
#: Of every text the last sentences are kept for the final score: so many, but at most one in ten.
HELD_OUT = 1000


@dataclass(frozen=True, eq=False)
class Corpora:
    """Text to read and text held out, one each a language; sentence pairs; translations by language.

    `dev` is more text of the first language that is held out, to choose weights by.
    """

    texts: Sequence[Sentences]
    held_out: Sequence[Sentences]
    pairs: Sequence[Bitext] = ()
    translations: Mapping[str, Weighted] | None = None
    dev: Sentences | None = None

    @property
    def languages(self) -> list[str]:
        return [text.language for text in self.texts]


# ---------------------------------------------------------------------------------------------- the world


def world_texts(
    languages: Sequence[str], count: int, seed: int, first: int = 0, *, domains: bool = False
) -> list[Sentences]:
    """A draw of the world for each language, none the translation of another.

    With `domains`, languages speak of different things: kinds of sentences are dealt out among them.
    """
    begin = WORLD_SEED * (seed + 1) + first
    return [
        world_sentences(count, code, seed=begin + place, domain=(place, len(languages)) if domains else None)
        for place, code in enumerate(languages)
    ]


def world_corpora(
    languages: Sequence[str],
    count: int,
    seed: int,
    *,
    domains: bool = False,
    switched: bool = False,
    pairs: int = 0,
    dev: bool = False,
) -> Corpora:
    """Everything from the world. Held-out text is of all kinds; pairs are of the first with each other."""
    texts = world_texts(languages, count, seed, domains=domains)
    held_out = world_texts(languages, HELD_OUT, seed, PLACES)
    begin = WORLD_SEED * (seed + 1) + 2 * PLACES
    others = [(languages[0], code) for code in languages[1:]]
    beside = [
        world_pairs(pairs, both, seed=begin + place).bitext for place, both in enumerate(others) if pairs
    ]
    begin += PLACES
    linked = [world_pairs(HELD_OUT * 5, both, seed=begin + i) for i, both in enumerate(others) if switched]
    counts = [(pair.languages, _counted(pair.bitext, pair.source_ids, pair.target_ids)) for pair in linked]
    chosen = world_texts(languages[:1], HELD_OUT, seed, 4 * PLACES)[0] if dev else None
    return Corpora(texts, held_out, beside, _both_ways(counts) if switched else None, chosen)


def _counted(bitext: Bitext, source: Iterable[int], target: Iterable[int]) -> Counter[tuple[str, str]]:
    """How often each word is linked to each."""
    strings = bitext.source.vocabulary.strings
    return Counter((strings[a], strings[b]) for a, b in zip(source, target, strict=True))


def _both_ways(
    counts: Iterable[tuple[tuple[str, str], Mapping[tuple[str, str], float]]],
) -> dict[str, Weighted]:
    """Translations of the words of each language, with how good each is."""
    found: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for (a, b), pairs in counts:
        for (word, other), weight in pairs.items():
            found[a][word][other] = found[b][other][word] = float(weight)
    return {code: dict(words) for code, words in found.items()}


# ------------------------------------------------------------------------------------------- files


def file_corpora(
    text: Sequence[str],
    *,
    limit: int | None = None,
    bitext: Sequence[str] = (),
    dictionaries: Sequence[str] = (),
    dev: bool = False,
) -> Corpora:
    """Everything from files: `en=FILE`, `en=hf:NAME`, `en,de=FILE` for both columns; several a language."""
    parts = [part for spec in text for part in _read(spec, limit)]
    codes = list(dict.fromkeys(part.language for part in parts))
    whole = [_together([part for part in parts if part.language == code]) for code in codes]
    pairs = [_pair_text(spec).read(words=True, limit=limit) for spec in bitext]
    for one in pairs:
        if missing := sorted(set(one.languages) - set(codes)):
            raise BadSetting(
                f"pairs of {missing[0]}, of which there is no text", remedy="give it with --text"
            )
    texts, held_out = (list(some) for some in zip(*map(_parted, whole), strict=True))
    chosen = None
    if dev:
        texts[0], chosen = _parted(texts[0])
    translations = _dictionaries(dictionaries, codes) if dictionaries else None
    return Corpora(texts, held_out, pairs, translations, chosen)


def _parted(text: Sentences) -> tuple[Sentences, Sentences]:
    """A text without its last sentences, and these; of very few the last one is in both."""
    cut = len(text) - min(HELD_OUT, len(text) // 10)
    return text.select(range(cut)), text.select(range(min(cut, len(text) - 1), len(text)))


def text_digests(text: Sequence[str], bitext: Sequence[str], dictionaries: Sequence[str]) -> dict[str, str]:
    """Fingerprints of all files that these name; what is not there is told."""
    named = [path for spec in (*text, *bitext) for path in _pair_text(spec).paths] if text or bitext else []
    return input_digests([*named, *dictionaries])


def _pair_text(spec: str) -> ParallelText:
    """Files of a spec; one language alone is a text and no pair."""
    codes, _, path = spec.partition("=")
    if "," not in spec:
        if not (codes.strip() and path.strip()):
            raise BadSetting(
                f"text {spec!r} not understood",
                remedy="en=FILE, or en,de=FILE for a file that holds both sides of a bitext",
            )
        return ParallelText((path.strip(),), (codes.strip(), ""))
    found = ParallelText.parse(spec)
    if found.languages[0] == found.languages[1]:
        raise BadSetting(f"text {spec!r}: {found.languages[0]} twice", remedy="two languages, en,de=FILE")
    return found


def text_languages(text: Sequence[str]) -> list[str]:
    """Whose text these are, each once."""
    return list(dict.fromkeys(code for spec in text for code in _pair_text(spec).languages if code))


def _read(spec: str, limit: int | None) -> list[Sentences]:
    found = _pair_text(spec)
    if found.languages[1]:
        bitext = read_bitext(list(found.paths), found.languages, cleaning=WHOLE, limit=limit)
        return [bitext.source, bitext.target]
    (path,), code = found.paths, check_language(found.languages[0])
    if is_dataset(path):
        return [Sentences.of(code, tokenise_all(code, islice(dataset_texts(path), limit)))]
    return [read_sentences(path, code, limit=limit)]


def _together(parts: Sequence[Sentences]) -> Sentences:
    """Several texts of one language as one, mixed so that held-out text is of all.

    Empty lines are left out, and what stands more than once is read once: held-out text was not read.
    """
    known: dict[str, int] = {}
    numbers = [
        np.array([known.setdefault(word, len(known)) for word in part.vocabulary], np.int32) for part in parts
    ]
    ids = np.concatenate([own[part.ids] for own, part in zip(numbers, parts, strict=True)])
    lengths = np.concatenate([part.lengths for part in parts])
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    whole = Sentences(parts[0].language, ids, offsets, Vocabulary.of(known))
    first = Distinct.of(whole).first
    filled = first[lengths[first] > 0]
    if len(filled) < 2:
        raise BadInput(
            f"{len(filled)} different sentences of {parts[0].language}",
            remedy="two or more, one on each line",
        )
    return whole.select(np.random.default_rng(0).permutation(filled))


def _dictionaries(paths: Sequence[str], codes: Sequence[str]) -> dict[str, Weighted]:
    """Dictionaries whose names tell their languages (`en-de.txt`); translations are equally good."""
    counts = []
    for path in paths:
        languages = languages_of(path)
        if languages is None or not set(languages) <= set(codes):
            raise BadSetting(
                f"a dictionary between {' and '.join(languages)}" if languages else "whose dictionary is it?",
                where=path,
                remedy=f"a name such as {codes[0]}-{codes[-1]}.txt, of languages there is text of",
            )
        counts.append((languages, dict.fromkeys(read_dictionary(path).pairs, 1.0)))
    return _both_ways(counts)
