"""Tiny encoders whose tokenizers know how to put two texts into one row, as those of their families do."""

from functools import cache
from typing import Any

import torch
import transformers
from tiny_encoders import FAMILIES
from tokenizers import Tokenizer, processors

from calque.encoders.encoder import EncoderOptions, HuggingFaceEncoder

#: How the families frame one text and two.
TEMPLATES = {
    "bert": ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"),
    "xlm-roberta": ("<s> $A </s>", "<s> $A </s> </s> $B </s>"),
    "deberta-v2": ("<s> $A </s>", "<s> $A </s> $B:1 </s>:1"),
    "modernbert": ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"),
    "t5": ("$A </s>", "$A </s> $B </s>"),
    "llama": ("<s> $A", "<s> $A <s> $B"),
}
#: Those whose tokenizers tell the model which text a piece is of.
SEGMENTED = ("bert", "deberta-v2")


@cache
def tokenizer(family: str, limit: int | None = None) -> Any:
    """The family's tokenizer with a frame for two texts, and with a limit where rows are to be cut."""
    plain = FAMILIES[family]()[1]
    backend = Tokenizer.from_str(plain.backend_tokenizer.to_str())
    single, pair = TEMPLATES[family]
    names = {part for part in single.split() if part != "$A"}
    special = [(name, backend.token_to_id(name)) for name in sorted(names)]
    backend.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=special)
    more: dict[str, Any] = {} if limit is None else {"model_max_length": limit}
    if family in SEGMENTED:
        more["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **plain.special_tokens_map, **more)


def paired(family: str, **options: Any) -> HuggingFaceEncoder:
    """An encoder of this family; the same weights every time."""
    torch.manual_seed(3)
    model, _ = FAMILIES[family]()
    return HuggingFaceEncoder.from_model(model, tokenizer(family), family, EncoderOptions(**options))
