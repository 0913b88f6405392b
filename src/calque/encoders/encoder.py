"""Any Hugging Face encoder as words to vectors.

Rows are sorted by length and batched by pieces, hidden states are pooled as they appear and let go, and the
layers above the highest one asked for are not run.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.utils.checkpoint

from calque.circumstances import note
from calque.encoders.hub import encoder_half, model_directory, quiet, read_model, weights_digest
from calque.encoders.memory import free, halving, portions
from calque.encoders.pooling import Bags, bags, pool
from calque.encoders.rows import Readable, Rows
from calque.encoders.spans import Spans, batches, joined, only, ragged
from calque.encoders.tokens import Reader
from calque.errors import BadInput, BadSetting, LackOfMemory, out_of_memory
from calque.files import text_digest
from calque.progress import bar, say
from calque.recipe import Device, Dtype
from calque.types import (
    Bitext,
    Floats,
    Longs,
    Pooling,
    SentencePooling,
    Sentences,
    States,
    TextBatch,
    WordIndex,
    WordVectors,
)

_TORCH = {Dtype.FLOAT32: torch.float32, Dtype.FLOAT16: torch.float16, Dtype.BFLOAT16: torch.bfloat16}

Keep = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class EncoderOptions:
    """How an encoder is run.

    `prefix` stands before every sentence, as E5 models want (`query: `); its pieces belong to no word. None
    is no prefix, or for an aligned encoder the one that it was aligned with.
    `max_length` counts pieces, special tokens included, and is also bounded by the model's own maximum.
    `batch_tokens` is how many pieces, padding included, go through the model at once; by default 1024 on a
    CPU, where small batches stay in its caches, and 16384 elsewhere. Where memory does not suffice it is
    halved until it does.
    """

    device: Device = Device.AUTO
    dtype: Dtype = Dtype.FLOAT32
    prefix: str | None = None
    max_length: int = 512
    batch_tokens: int | None = None
    revision: str | None = None

    def __post_init__(self) -> None:
        for name in ("max_length", "batch_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise BadSetting(f"{name} is {value}", remedy="at least 1")


class HuggingFaceEncoder:
    """A model and its tokenizer, as an `Encoder`.

    `model` is the model as it is saved and loaded; `body` is the part that reads text, which differs from it
    in encoder–decoder models only.
    """

    languages: frozenset[str] | None = None

    def __init__(
        self, model: Any, tokenizer: Any, name: str, options: EncoderOptions, folder: Path | None = None
    ) -> None:
        self.name, self.options = name, options
        self.device = choose_device(options.device)
        self.dtype = choose_dtype(options.dtype, self.device)
        if self.dtype != _TORCH[options.dtype]:
            warnings.warn(f"{options.dtype} is for GPUs: running in float32 on this CPU", stacklevel=3)
        self._usual_batch = 1024 if self.device.type == "cpu" else 16384
        self.batch_tokens = options.batch_tokens or self._usual_batch
        #: In how many parts a batch goes through the model whose gradients are taken; see `read_in`.
        self.portions, self._rows = 1, 0
        self.model = model.base_model.to(device=self.device, dtype=self.dtype).eval()
        self.body = encoder_half(self.model)
        self.tokenizer = tokenizer
        self.reader = Reader(
            tokenizer, prefix=options.prefix or "", limit=min(options.max_length, longest_input(self.body))
        )
        #: What keeps the model from being an ordinary one for now, with what to do before it can be saved.
        self.unfinished: dict[str, str] = {}
        self._folder = folder
        self._made = self._versions()
        self._hashed: dict[tuple[int, ...], str] = {}
        check_vocabulary(self.body, tokenizer, name)

    @classmethod
    def load(
        cls, name_or_path: str, options: EncoderOptions | None = None, *, name: str | None = None
    ) -> HuggingFaceEncoder:
        """Read a model directory, or a model of the hub by name; `name` is what to call it."""
        options = options or EncoderOptions()
        folder = model_directory(name_or_path, options.revision)
        model, tokenizer = read_model(folder, choose_dtype(options.dtype, choose_device(options.device)))
        return cls(model, tokenizer, name or name_or_path, options, folder)

    @classmethod
    def from_model(
        cls, model: Any, tokenizer: Any, name: str, options: EncoderOptions | None = None
    ) -> HuggingFaceEncoder:
        """Take a model that is already in memory; a head it may have is left out."""
        return cls(model, tokenizer, name, options or EncoderOptions())

    def save(self, folder: Path) -> None:
        """Write a directory that `load` and `AutoModel` read."""
        for what, remedy in self.unfinished.items():
            raise BadSetting(f"{self.name} cannot be saved with {what}", remedy=remedy)
        with quiet():
            self.model.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)

    # ---------------------------------------------------------------------------------- what it is

    @property
    def directory(self) -> Path | None:
        """Where this encoder was read from; None when its weights exist only in memory."""
        return self._folder if self._versions() == self._made else None

    @property
    def width(self) -> int:
        return self._size[0]

    @property
    def depth(self) -> int:
        return self._size[1]

    @property
    def fingerprint(self) -> str:
        """SHA-256 of weights, configuration, tokenizer and of what changes vectors: options and batches.

        Training is noticed by torch's version counters. Fused optimisers do not move those: after one, make
        the encoder anew with `from_model`.
        """
        now = (self.batch_tokens, *self._versions())
        if now not in self._hashed:
            folder = self.directory
            weights = state_digest(self.body) if folder is None else weights_digest(folder)
            config = json.dumps(_lasting(self.body.config.to_dict()), sort_keys=True, default=str)
            batch = [] if self.batch_tokens == self._usual_batch else [str(self.batch_tokens)]
            parts = (weights, config, self.reader.digest, str(self.dtype), *batch)
            self._hashed = {now: text_digest(*parts)}
        return self._hashed[now]

    def still_as_read(self) -> None:
        """Weights were replaced by equal ones: this is what lies in its directory all the same."""
        self._made = self._versions()

    def speaking(self, language: str) -> HuggingFaceEncoder:
        """The encoder that reads a language: this one reads them all."""
        return self

    def _versions(self) -> tuple[int, ...]:
        return tuple(tensor._version for tensor in self.body.state_dict(keep_vars=True).values())

    # ------------------------------------------------------------------------------------- reading

    def batch(self, sentences: Sentences) -> TextBatch:
        """These sentences as one batch of pieces, with word spans."""
        layout = self.reader.layout(sentences)
        everything = WordIndex.every(sentences)
        found = layout.find(everything)
        specials = np.full((len(sentences), 2), -1, np.int64)
        if layout.frame.first:
            specials[:, 0] = 0
        if layout.frame.last:
            specials[:, 1] = layout.lengths - 1
        pieces, mask = layout.rows(np.arange(len(sentences)), self.reader.pad)
        return TextBatch(
            language=sentences.language,
            pieces=torch.from_numpy(pieces),
            mask=torch.from_numpy(mask),
            row=found.spans.sentence,
            word=everything.word[found.present].astype(np.int64),
            start=found.spans.start,
            end=found.spans.end,
            specials=specials,
        )

    def pieces(self, sentences: Sentences) -> Sentences:
        """The same text with this encoder's pieces for words, for linking subwords."""
        return self.reader.pieces(sentences)

    def bitext_pieces(self, bitext: Bitext) -> Bitext:
        """Both sides as this encoder's pieces, over one vocabulary."""
        count, sides = len(bitext), (bitext.source, bitext.target)
        both = self.pieces(joined(*sides))
        source, target = (
            replace(both.select(range(first, first + count)), language=side.language)
            for first, side in zip((0, count), sides, strict=True)
        )
        return replace(bitext, source=source, target=target)

    # ------------------------------------------------------------------------------------- vectors

    def states(self, batch: TextBatch, layers: Sequence[int]) -> States:
        """Differentiable hidden states at these layers, in the model's present mode (training or not)."""
        chosen = self._layers(layers)
        inputs = self._inputs(batch.pieces, batch.mask, batch.segments)
        self._rows = len(batch.pieces)

        def run(rows: slice) -> tuple[torch.Tensor, ...]:
            part = {name: one[rows] if torch.is_tensor(one) else one for name, one in inputs.items()}
            return self._run(part, chosen, lambda hidden: hidden)

        if not torch.is_grad_enabled():
            found = halving(run, self._rows)
        elif self.portions == 1:
            found = [run(slice(None))]
        else:  # what lies between the layers is let go, and made once more for the gradient
            found = [
                torch.utils.checkpoint.checkpoint(run, rows, use_reentrant=False)
                for rows in portions(self._rows, self.portions)
            ]
        hidden = found[0] if len(found) == 1 else tuple(map(torch.cat, zip(*found, strict=True)))
        return States(chosen, hidden)

    def read_in(self, parts: int) -> bool:
        """Read batches whose gradients are taken in so many parts; False where each was one row before."""
        before, self.portions = self.portions, parts
        return before < self._rows

    def word_vectors(
        self,
        sentences: Sentences,
        words: WordIndex | None = None,
        *,
        layers: Sequence[int],
        pooling: Pooling = "mean",
    ) -> WordVectors:
        """Vectors of these words (all of them by default), without gradient."""
        chosen = self._layers(layers)
        text, asked = (sentences, WordIndex.every(sentences)) if words is None else only(sentences, words)
        layout = self.reader.layout(text)
        found = layout.find(asked)
        vectors = self._pooled(layout, found.spans, chosen, pooling)
        return WordVectors(chosen, vectors, found.present, found.dropped)

    def sentence_vectors(
        self, sentences: Sentences, *, layers: Sequence[int], pooling: SentencePooling = "mean"
    ) -> Floats:
        """One vector a sentence: the mean of its pieces, or its first special token.

        Special tokens and prefix are no part of the mean; an empty sentence has the zero vector.
        """
        chosen = self._layers(layers)
        layout = self.reader.layout(sentences)
        texts = layout.texts()
        full = np.flatnonzero(texts.end > texts.start)
        spans = texts.take(full)
        if pooling == "first":
            if not layout.frame.first:
                raise BadSetting(f"{self.name} puts no special token first", remedy="pooling mean")
            spans = Spans(spans.sentence, np.zeros_like(spans.start), np.ones_like(spans.end))
        vectors = np.zeros((len(chosen), len(sentences), self.width), np.float32)
        vectors[:, full] = self._pooled(layout, spans, chosen, "mean" if pooling == "mean" else "first")
        return vectors

    def unit_vectors(self, rows: Rows, *, layers: Sequence[int], pooling: Pooling = "mean") -> Floats:
        """Vectors of the units of these rows, without gradient. Shape: (layers, units, d)."""
        return self._pooled(rows, rows.units, self._layers(layers), pooling)

    def _pooled(self, layout: Readable, spans: Spans, layers: tuple[int, ...], pooling: Pooling) -> Floats:
        """Pool these spans over the fewest rows, in the order given. Shape: (layers, spans, d).

        Where memory does not suffice all begins anew in smaller batches: one call, one plan.
        """
        out = np.empty((len(layers), len(spans), self.width), np.float32)
        while (large := self._read_into(out, layout, spans, layers, pooling)) is not None:
            self._halve_batches(layout, large)
        return out

    def _halve_batches(self, layout: Readable, rows: Longs) -> None:
        """Half as many pieces at a time from here on, since these rows did not fit."""
        free()
        if len(rows) == 1:
            length = int(layout.lengths[rows[0]])
            text = self.tokenizer.decode(layout.rows(rows, self.reader.pad)[0][0], skip_special_tokens=True)
            raise LackOfMemory(
                f"not enough memory for one row of {length} pieces, which begins {text[:60]!r}",
                where=self.name,
                remedy="--max-length cuts longer ones; or more memory, or a smaller encoder",
            )
        before, self.batch_tokens = self.batch_tokens, self.batch_tokens // 2
        say(f"not enough memory for {before} pieces at a time: {self.batch_tokens} from here on")
        note("batch", str(self.batch_tokens))

    def _read_into(
        self, out: Floats, layout: Readable, spans: Spans, layers: tuple[int, ...], pooling: Pooling
    ) -> Longs | None:
        """Fill in the vectors of these spans; returns the rows that did not fit into memory, if any."""
        order = np.argsort(spans.sentence, kind="stable")
        used, first, count = np.unique(spans.sentence[order], return_index=True, return_counts=True)
        with self._still(), bar("encoding", len(used), "sentences") as advance:
            for chosen in batches(layout.lengths[used], self.batch_tokens):
                row, place = ragged(first[chosen], count[chosen])
                asked = order[place]
                try:
                    pieces, mask = layout.rows(used[chosen], self.reader.pad)
                    taken = bags(
                        row, spans.start[asked], spans.end[asked], width=pieces.shape[1], pooling=pooling
                    )
                    kinds = layout.kinds(used[chosen])
                    segments = None if kinds is None else torch.from_numpy(kinds)
                    inputs = self._inputs(torch.from_numpy(pieces), torch.from_numpy(mask), segments)
                    for level, vectors in enumerate(self._run(inputs, layers, _pooler(taken))):
                        out[level, asked] = vectors.float().cpu().numpy()
                except Exception as error:
                    if not out_of_memory(error):
                        raise
                    return used[chosen]
                advance(len(chosen))
        return None

    # --------------------------------------------------------------------------------- the network

    def _layers(self, layers: Sequence[int]) -> tuple[int, ...]:
        wrong = [layer for layer in layers if not 0 <= layer <= self.depth]
        if wrong or not layers:
            raise BadSetting(
                f"no layer {wrong[0]}" if wrong else "no layers asked for",
                remedy=f"{self.name} has layers 0 (embeddings) to {self.depth}",
            )
        return tuple(int(layer) for layer in layers)

    def _inputs(
        self, pieces: torch.Tensor, mask: torch.Tensor, segments: torch.Tensor | None = None
    ) -> dict[str, Any]:
        inputs: dict[str, Any] = {"input_ids": pieces.to(self.device)}
        inputs["attention_mask"] = mask.to(self.device, torch.long)
        if segments is not None and "token_type_ids" in self._accepted:
            inputs["token_type_ids"] = segments.to(self.device)
        if "use_cache" in self._accepted:
            inputs["use_cache"] = False
        return inputs

    def _run(self, inputs: dict[str, Any], layers: tuple[int, ...], keep: Keep) -> tuple[torch.Tensor, ...]:
        """What `keep` makes of the hidden states at these layers."""
        if self.blocks is None:
            hidden = self.body(**inputs, output_hidden_states=True).hidden_states
            return tuple(keep(hidden[layer]) for layer in layers)
        found = tapped(self.body, self.blocks, inputs, frozenset(layers), keep)
        return tuple(found[layer] for layer in layers)

    @contextmanager
    def _still(self) -> Iterator[None]:
        """Dropout off and no gradients, whatever the model is in the middle of."""
        training = self.model.training
        self.model.eval()
        try:
            with torch.inference_mode():
                yield
        finally:
            self.model.train(training)

    @cached_property
    def _accepted(self) -> frozenset[str]:
        return frozenset(inspect.signature(self.body.forward).parameters)

    @cached_property
    def _probe(self) -> tuple[dict[str, Any], tuple[torch.Tensor, ...]]:
        """A very short input and the model's own account of its hidden states."""
        inputs = self._inputs(torch.zeros((1, 2), dtype=torch.long), torch.ones((1, 2), dtype=torch.bool))
        with self._still():
            hidden = tuple(self.body(**inputs, output_hidden_states=True).hidden_states)
        if len(hidden) < 2:  # embeddings alone, if that
            raise BadInput("a model without layers", where=self.name)
        return inputs, hidden

    @cached_property
    def _size(self) -> tuple[int, int]:
        hidden = self._probe[1]
        return int(hidden[-1].shape[-1]), len(hidden) - 1

    @cached_property
    def blocks(self) -> tuple[Any, ...] | None:
        """The stack of layers, if there is one whose inputs are the hidden states; None otherwise."""
        inputs, hidden = self._probe
        depth = len(hidden) - 1
        stacks = [m for m in self.body.modules() if isinstance(m, torch.nn.ModuleList) and len(m) == depth]
        if len(stacks) != 1:
            return None
        with self._still():
            found = tapped(self.body, tuple(stacks[0]), inputs, frozenset(range(depth + 1)), lambda h: h)
        same = len(found) == depth + 1 and all(torch.equal(found[i], hidden[i]) for i in found)
        return tuple(stacks[0]) if same else None


# ------------------------------------------------------------------------------------------ helpers


class _Enough(Exception):
    """The highest layer asked for has been seen."""


def tapped(
    body: Any, blocks: tuple[Any, ...], inputs: dict[str, Any], layers: frozenset[int], keep: Keep
) -> dict[int, torch.Tensor]:
    """Run a model, keeping what `keep` makes of each asked layer; layers above the highest are not run.

    Layer l is what block l (counted from 0) is given; the last layer is what the model gives back, which in
    some models a norm has been applied to.
    """
    found: dict[int, torch.Tensor] = {}
    top = max(layers)

    def tap(layer: int) -> Callable[[Any, tuple[Any, ...], dict[str, Any]], None]:
        def see(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            found[layer] = keep(args[0] if args else kwargs["hidden_states"])
            if layer == top:
                raise _Enough

        return see

    hooks = [
        blocks[layer].register_forward_pre_hook(tap(layer), with_kwargs=True)
        for layer in layers
        if layer < len(blocks)
    ]
    try:
        last = body(**inputs).last_hidden_state
        if len(blocks) in layers:
            found[len(blocks)] = keep(last)
    except _Enough:
        pass
    finally:
        for hook in hooks:
            hook.remove()
    return found


def _pooler(taken: Bags) -> Keep:
    return lambda hidden: pool(hidden, taken)


def choose_device(wanted: Device) -> torch.device:
    """The device to run on; one that is asked for and not there is an error."""
    there = {
        Device.CUDA: torch.cuda.is_available(),
        Device.MPS: torch.backends.mps.is_available(),
        Device.CPU: True,
    }
    if wanted is Device.AUTO:
        return torch.device(next(device.value for device, present in there.items() if present))
    if not there[wanted]:
        raise BadSetting(f"device {wanted.value} is not available here", remedy="--device auto or cpu")
    return torch.device(wanted.value)


def choose_dtype(wanted: Dtype, device: torch.device) -> torch.dtype:
    """The precision to run in. Half precision on a CPU is slow, and crashes on some: single is used there."""
    return torch.float32 if device.type == "cpu" else _TORCH[wanted]


def longest_input(body: Any) -> int:
    """The most pieces a model can read; without a bound of its own, any number."""
    bound = getattr(body.config, "max_position_embeddings", None)
    if not isinstance(bound, int) or bound < 1:
        return 10**9
    for name, module in body.named_modules():
        # RoBERTa counts positions from the padding id + 1, so a table of 514 serves 512 pieces.
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
            return bound - int(module.padding_idx) - 1
    return bound


def check_vocabulary(body: Any, tokenizer: Any, name: str) -> None:
    """A tokenizer with more pieces than the model has embeddings belongs to another model."""
    rows, top = body.get_input_embeddings().num_embeddings, max(tokenizer.get_vocab().values(), default=-1)
    if not 0 <= top < rows:
        raise BadInput(
            f"the tokenizer has pieces up to id {top}, the model {rows} embeddings",
            where=name,
            remedy="give the tokenizer that belongs to the model",
        )


def state_digest(module: Any) -> str:
    """SHA-256 of a model's weights in memory."""
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        digest.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _lasting(config: dict[str, Any]) -> dict[str, Any]:
    """A configuration without what changes from one place or version to another."""
    return {
        key: value for key, value in config.items() if key not in ("_name_or_path", "transformers_version")
    }
