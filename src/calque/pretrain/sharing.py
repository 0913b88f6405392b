"""What the languages of a model share: conditions by name, and models that share so much and no more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from calque.encoders.tying import tie
from calque.pretrain.vocabulary import Pieces
from calque.recipe import Choice

#: The softmax of BERT's masked-language-modelling head.
_SOFTMAX = ("cls.predictions.decoder", "cls.predictions.bias")


class Share(Choice):
    """What languages share.

    all: vocabulary, embeddings, layers and softmax; pieces are those of all languages' text together.
    default-anchors: each language's own pieces, of which equal ones are one. no-anchors: of which none are,
    but special tokens. extra-anchors: as all, and words are replaced by translations of a dictionary.
    no-embeddings: embeddings, positions and softmax are each language's own. no-lower-3, no-lower-6: the
    lower 3 and 6 of 8 layers are, at other depths as many in proportion. no-embeddings-lower-3,
    no-embeddings-lower-6: both.
    """

    ALL = "all"
    DEFAULT_ANCHORS = "default-anchors"
    NO_ANCHORS = "no-anchors"
    EXTRA_ANCHORS = "extra-anchors"
    NO_EMBEDDINGS = "no-embeddings"
    NO_LOWER_3 = "no-lower-3"
    NO_LOWER_6 = "no-lower-6"
    NO_EMBEDDINGS_LOWER_3 = "no-embeddings-lower-3"
    NO_EMBEDDINGS_LOWER_6 = "no-embeddings-lower-6"


@dataclass(frozen=True)
class Sharing:
    """How pieces are numbered, whether embeddings are each language's own, and how many of 8 layers."""

    pieces: Pieces = Pieces.JOINT
    own_embeddings: bool = False
    own_lower: int = 0
    switched: bool = False

    @property
    def whole(self) -> bool:
        """One model for all languages."""
        return not (self.own_embeddings or self.own_lower)

    def separate(self, layers: int) -> list[str]:
        """Parts of an encoder of this depth that each language has for itself.

        >>> Sharing(own_embeddings=True, own_lower=3).separate(4)
        ['embeddings', 'encoder.layer.0', 'encoder.layer.1']
        """
        lower = int(self.own_lower * layers / 8 + 0.5)
        own = ["embeddings"] if self.own_embeddings else []
        return own + [f"encoder.layer.{number}" for number in range(lower)]


CONDITIONS: dict[Share, Sharing] = {
    Share.ALL: Sharing(),
    Share.DEFAULT_ANCHORS: Sharing(Pieces.UNION),
    Share.NO_ANCHORS: Sharing(Pieces.APART),
    Share.EXTRA_ANCHORS: Sharing(switched=True),
    Share.NO_EMBEDDINGS: Sharing(Pieces.OWN, own_embeddings=True),
    Share.NO_LOWER_3: Sharing(Pieces.UNION, own_lower=3),
    Share.NO_LOWER_6: Sharing(Pieces.UNION, own_lower=6),
    Share.NO_EMBEDDINGS_LOWER_3: Sharing(Pieces.OWN, own_embeddings=True, own_lower=3),
    Share.NO_EMBEDDINGS_LOWER_6: Sharing(Pieces.OWN, own_embeddings=True, own_lower=6),
}


def sharing_models(
    make: Callable[[int], Any], languages: int, separate: Sequence[str], *, softmax: bool
) -> list[Any]:
    """A model with BERT's masked-language-modelling head for each language, with what is not separate tied.

    `make` gives the model of the language of this number; one is made where nothing is separate. With
    `softmax`, each language has one of its own.
    """
    if not separate:
        return [make(0)] * languages
    models = [make(number) for number in range(languages)]
    tie(models, [f"bert.{part}" for part in separate] + (list(_SOFTMAX) if softmax else []))
    return models
