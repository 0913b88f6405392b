"""Any encoder of calque as a model that mteb evaluates, maps applied by the language of each text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import langcodes
import numpy as np
import torch

from calque.encoders.aligned import AlignedEncoder
from calque.encoders.encoder import EncoderOptions
from calque.encoders.open import open_encoder
from calque.encoders.specs import short_name
from calque.encoders.static import StaticEncoder
from calque.errors import BadSetting
from calque.pipeline.pairing import one_layer
from calque.recipe import Device, suggestion
from calque.text.languages import WORLD, check_language, primary_subtag
from calque.text.words import tokenise_all
from calque.types import Encoder, Floats, SentencePooling, Sentences

#: What mteb asks of a model and an encoder does not know of itself.
_NOT_KNOWN = (
    *("loader", "release_date", "languages", "n_parameters", "memory_usage_mb", "max_tokens", "license"),
    *("open_weights", "public_training_code", "public_training_data", "training_datasets"),
)


class MtebEncoder:
    """Sentence vectors for `mteb.evaluate`, by mteb's `EncoderProtocol`.

    `encoder` is one that is open, or a name as for `open_encoder`. Where it has maps or weights for each
    language, the language of a text is that of the task's subset; `language` gives one for all texts. A
    subset of two languages does not tell which side is which: `in_order` says that its sides are encoded one
    after the other, in the order in which it names their languages, as bitext mining and similarity tasks
    do. After a run that failed between two sides, make another.
    """

    def __init__(
        self,
        encoder: str | Path | Encoder,
        revision: str | None = None,
        *,
        device: str | None = None,
        layer: str = "last",
        pooling: SentencePooling = "mean",
        prefix: str | None = None,
        language: str | None = None,
        in_order: bool = False,
    ) -> None:
        if isinstance(encoder, str | Path):
            where = Device.parse(device or "auto")
            encoder = open_encoder(str(encoder), EncoderOptions(where, prefix=prefix, revision=revision))
        elif prefix is not None or revision is not None or device is not None:
            raise BadSetting("an encoder that is open has its prefix, revision and device already")
        self.encoder, self.pooling, self.in_order = encoder, pooling, in_order
        self.layer = one_layer(layer, encoder.depth)
        self.language = None if language is None else self._known(language)
        self._waiting: tuple[str, str, str] | None = None
        maps = encoder.layers if isinstance(encoder, AlignedEncoder) else ()
        if maps and self.layer not in maps:
            raise BadSetting(
                f"{encoder.name} has no maps at layer {self.layer}: its vectors there are not aligned",
                remedy=f"layer={' or '.join(map(str, maps))}",
            )

    # --------------------------------------------------------------------------------- mteb's protocol

    def encode(
        self,
        inputs: Iterable[Mapping[str, Any]],
        *,
        task_metadata: Any,
        hf_split: str,
        hf_subset: str,
        prompt_type: Any = None,
        **kwargs: Any,
    ) -> Floats:
        """Vectors of the texts of all batches. Shape: (texts, d)."""
        texts = [text for batch in inputs for text in batch["text"]]
        named = self._languages(task_metadata, hf_subset)
        side = self._side(named, (task_metadata.name, hf_split, hf_subset), prompt_type)
        language = named[side] if named else ""
        encoder = self.encoder
        if isinstance(encoder, AlignedEncoder) and named:
            encoder = encoder.meeting((named[0], named[-1]))
        # Static vectors are of words; other encoders cut a text as their own tokenizer would.
        words = list(tokenise_all(language, texts, tokenised=not _of_words(encoder)))
        text = Sentences.of(language, words)
        (vectors,) = encoder.sentence_vectors(text, layers=[self.layer], pooling=self.pooling)
        return np.asarray(vectors, np.float32)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> torch.Tensor:
        """Cosines of all with all. Shape: (n, d), (m, d) to (n, m)."""
        return _unit(embeddings1) @ _unit(embeddings2).T

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> torch.Tensor:
        """Cosines of each with its partner. Shape: (n, d), (n, d) to (n,)."""
        return (_unit(embeddings1) * _unit(embeddings2)).sum(-1)

    @property
    def mteb_model_meta(self) -> Any:
        """What mteb files results under: the encoder's name, and its fingerprint for a revision."""
        from mteb.models import ModelMeta

        told = {"layer": self.layer, "pooling": self.pooling, "language": self.language}
        about: dict[str, Any] = {
            "name": f"calque/{short_name(self.encoder.name)}",
            "revision": self.encoder.fingerprint[:12],
            "embed_dim": self.encoder.width,
            "framework": ["PyTorch"],
            "similarity_fn_name": "cosine",
            "use_instructions": False,
            "experiment_kwargs": {name: value for name, value in told.items() if value is not None},
        }
        return ModelMeta(**dict.fromkeys(_NOT_KNOWN), **about)

    # --------------------------------------------------------------------------------------- languages

    @property
    def _held(self) -> list[str]:
        """The languages that it has maps or weights for, in any space."""
        if isinstance(self.encoder, AlignedEncoder) and self.encoder.maps:
            return sorted({key.language for key in self.encoder.maps})
        return sorted(self.encoder.languages or ())

    def _languages(self, task: Any, subset: str) -> list[str]:
        """The languages of a subset, as this encoder names them; none where it reads all alike."""
        if self.language is not None:
            return [self.language]
        told = [_language(one) for one in task.hf_subsets_to_langscripts.get(subset) or [subset]]
        named = [one for one in told if one is not None]
        if not self._held:
            return named if len(named) == 1 else []
        if not named or len(named) < len(told):
            raise BadSetting(f"subset {subset!r} of {task.name} names no language", remedy="language='de'")
        return [self._known(one) for one in named]

    def _known(self, code: str) -> str:
        """A language by the code that this encoder has for it, whatever script and region are named."""
        given, held = check_language(code), self._held
        if not held or given in held:
            return given
        same = [one for one in held if _macro(one) == _macro(given)]
        if len(same) != 1:
            raise BadSetting(
                f"{self.encoder.name} has nothing for language {given!r}", remedy=suggestion(given, held)
            )
        return same[0]

    def _side(self, named: Sequence[str], asked: tuple[str, str, str], prompt_type: Any) -> int:
        """Which of the languages of a subset these texts are in."""
        if len(set(named)) < 2:
            return 0
        two = len(named) == 2 and prompt_type is None
        if two and self.in_order:
            second = self._waiting == asked
            self._waiting = None if second else asked
            return int(second)
        task, _, subset = asked
        raise BadSetting(
            f"subset {subset!r} of {task} is in {', '.join(named)}, and mteb does not say in which of them a "
            "text is",
            remedy=f"language={named[0]!r} for all texts"
            + (", or in_order=True for sides in the order of the languages" if two else ""),
        )


def _language(code: str) -> str | None:
    """A language in canonical form; None for what is none."""
    try:
        return check_language(code)
    except BadSetting:
        return None


def _macro(code: str) -> str:
    """The widest name of a language: `zh` for `cmn-Hans`, which benchmarks prefer."""
    return code if code in WORLD else primary_subtag(langcodes.standardize_tag(code, macro=True))


def _of_words(encoder: Encoder) -> bool:
    return isinstance(encoder.inner if isinstance(encoder, AlignedEncoder) else encoder, StaticEncoder)


def _unit(vectors: Any) -> torch.Tensor:
    """As rows of length one. Shape: (d,) or (n, d) to (n, d)."""
    rows = torch.as_tensor(vectors).float()
    return torch.nn.functional.normalize(rows.reshape(-1, rows.shape[-1]), dim=-1)
