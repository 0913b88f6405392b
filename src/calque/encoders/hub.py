"""Models as directories: here, or on the Hugging Face hub. Weights are read from safetensors only."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from calque.encoders.bundled import BUNDLED
from calque.encoders.specs import by_language, is_by_language
from calque.errors import BadInput, CalqueError, lacks_memory
from calque.files import file_digest, read_json, text_digest

_WANTED = ["config.json", "model*.safetensors", "model.safetensors.index.json", "tokenizer*", "vocab*",
           "special_tokens_map.json", "added_tokens.json", "merges.txt", "*.spm", "*.model"]  # fmt: skip
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)
_NAMES = "a model directory, or OWNER/MODEL on the hub (a name that begins with a folder here is a path)"
ADAPTER = "adapter_config.json"
_SHARD = re.compile(r"[\w.-]+\.safetensors", re.ASCII)
_TEMPLATE = re.compile(r"\w[\w.-]*", re.ASCII)
#: Folders that calque's own examples write into: nothing in them is looked for elsewhere.
RUNS = frozenset({"runs"})
#: More of each than any model has.
_AT_MOST = {("layers", "layer", "groups", "group_num"): 1000, ("labels", "extra_ids", "experts"): 100_000}
_TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model", "*.spm")


def model_directory(name: str, revision: str | None = None) -> Path:
    """The directory of a model: a path is taken as it is, what can be no path is a name on the hub."""
    path = Path(name).expanduser()
    if path.exists() or not may_be_on_hub(name):
        if not path.is_dir():
            raise BadInput("no such directory", where=name, remedy=_beside(path))
    else:
        path = _from_hub(name, revision)
    _check(path)
    return path


def may_be_on_hub(name: str) -> bool:
    """Whether a name can be one on the hub, MODEL or OWNER/MODEL; a mistyped path is not asked for.

    >>> may_be_on_hub("bert-base-multilingual-cased"), may_be_on_hub("./modle"), may_be_on_hub("runs/alinged")
    (True, False, False)
    """
    owner, _, rest = name.rpartition("/")
    local = owner in RUNS or (bool(owner) and Path(owner).is_dir())
    return bool(_HUB_NAME.fullmatch(name)) and bool(rest) and not local


def _beside(path: Path) -> str:
    """The folder that was meant, by its name."""
    there = [one.name for one in path.parent.iterdir() if one.is_dir()] if path.parent.is_dir() else []
    meant = difflib.get_close_matches(path.name, there, 1)
    return f"did you mean {path.parent / meant[0]}?" if meant else _NAMES


def fetched_before(spec: str, revision: str | None) -> str:
    """A name that stands in a file and was not given by a person: nothing is fetched for it.

    What is a name on the hub becomes its folder in the cache; everything else stays.
    """
    if is_by_language(spec):
        return ",".join(f"{code}={fetched_before(one, revision)}" for code, one in by_language(spec).items())
    known = spec in BUNDLED or Path(spec).expanduser().exists() or not may_be_on_hub(spec)
    return spec if known else str(_from_hub(spec, revision, fetch=False))


def _from_hub(name: str, revision: str | None, *, fetch: bool = True) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError

    try:
        found = snapshot_download(
            name,
            revision=revision,
            allow_patterns=_WANTED,
            ignore_patterns=["*/*"],
            local_files_only=not fetch,
        )
        return Path(found)
    except (HfHubHTTPError, OSError, ValueError) as error:
        if not fetch:
            raise BadInput(
                "is named by a file and was never fetched here; only what a person names is",
                where=name,
                remedy=f"if you trust it: hf download {name}",
            ) from None
        raise BadInput(
            f"no directory of this name, and the hub did not give it ({type(error).__name__})",
            where=name,
            remedy="check the spelling; a hub name needs the network once, and HF_HUB_OFFLINE unset",
        ) from None


def _check(path: Path) -> None:
    if not (path / "config.json").is_file():
        raise BadInput("no config.json: not a model", where=path, remedy="a Hugging Face model directory")
    if not weight_files(path):
        old = [file.name for pattern in ("*.bin", "*.pt", "*.h5", "*.msgpack") for file in path.glob(pattern)]
        found = f"only {', '.join(sorted(old))}" if old else "none"
        raise BadInput(
            f"weights are read from safetensors, and there are {found}",
            where=path,
            remedy="save the model again with model.save_pretrained(..., safe_serialization=True)",
        )
    if not any(next(path.glob(pattern), None) for pattern in _TOKENIZERS):
        raise BadInput(
            "no tokenizer files", where=path, remedy="tokenizer.save_pretrained into the directory"
        )
    _check_alone(path)


def _check_alone(path: Path) -> None:
    """Refuse what would bring in other weights than those that are looked at, or code from a hub."""
    if (path / ADAPTER).is_file():
        raise BadInput(
            f"{ADAPTER}: an adapter beside the weights, which would change them where peft is installed",
            where=path,
            remedy="merge it with peft's merge_and_unload and save the model, or remove it",
        )
    for file in (path / "config.json", path / "tokenizer_config.json"):
        for name, value in _settings(read_json(file) if file.is_file() else {}):
            _check_setting(name, value, file)


def _check_setting(name: str, value: Any, file: Path) -> None:
    if name == "transformers_weights":
        raise BadInput(f"names other weights, {value!r}", where=file, remedy="remove it")
    if "_implementation" in name and "/" in str(value):
        raise BadInput(f"{name} names code on a hub, {value!r}", where=file, remedy="remove it")
    # transformers hands it on to what is named inside.
    if name == "trust_remote_code" and value:
        raise BadInput("asks for trust in code", where=file, remedy="remove trust_remote_code")
    # They are made before it is found that there are no weights for them.
    for names, most in _AT_MOST.items():
        if name.endswith(names) and isinstance(value, int) and value > most:
            raise BadInput(f"{name} is {value}, at most {most} can be", where=file)
    if name == "chat_template" and isinstance(value, list | dict):
        _check_templates(value, file)


def _check_templates(templates: list[Any] | dict[str, Any], file: Path) -> None:
    """Each is saved as a file of its name."""
    named = templates.items() if isinstance(templates, dict) else map(_template, templates)
    for name, text in named:
        if not (isinstance(name, str) and _TEMPLATE.fullmatch(name) and isinstance(text, str)):
            raise BadInput(f"a chat template named {name!r}", where=file, remedy="remove chat_template")


def _template(one: Any) -> tuple[Any, Any]:
    """The name and the text of a template in a list."""
    return (one.get("name"), one.get("template")) if isinstance(one, dict) else (None, None)


def _settings(held: Any) -> Iterator[tuple[str, Any]]:
    """All names with their values, those inside others too, however deep; names of labels are no settings."""
    left = [held]
    while left:
        one = left.pop()
        if isinstance(one, Mapping):
            inside = {str(name): value for name, value in one.items() if name not in ("label2id", "id2label")}
            yield from inside.items()
            left.extend(inside.values())
        elif isinstance(one, list):
            left.extend(one)


def weight_files(path: Path) -> list[Path]:
    """The model's own safetensors files; others may lie beside them."""
    single, index = path / "model.safetensors", path / "model.safetensors.index.json"
    if single.is_file():
        return [single]
    if not index.is_file():
        return []
    files = [path / name for name in _shards(index)]
    for file in files:
        if not file.is_file():
            raise BadInput("named in model.safetensors.index.json, but not here", where=file)
    return files


def _shards(index: Path) -> list[str]:
    """The files that an index names: safetensors in its own folder, nothing elsewhere."""
    held = read_json(index)
    found = held.get("weight_map") if isinstance(held, dict) else None
    names = list(found.values()) if isinstance(found, dict) else []
    wrong = [one for one in names if not (isinstance(one, str) and _SHARD.fullmatch(one))]
    if wrong or not names:
        told = f"names {wrong[0]!r}" if wrong else "names no file"
        raise BadInput(f"{told}, where weights in this folder are expected", where=index)
    return sorted(set(names))


def weights_digest(path: Path) -> str:
    """SHA-256 over the digests of the model's weight files."""
    return text_digest(*(file_digest(file) for file in weight_files(path)))


@contextmanager
def loading(path: Path, what: str) -> Iterator[None]:
    """Whatever transformers, tokenizers and safetensors stumble over in a directory is told of it."""
    try:
        with quiet():
            yield
    except CalqueError:
        raise
    except BaseException as error:
        # tokenizers raises bare ones, and panics; files of another shape bring all others.
        known = isinstance(error, Exception) or type(error).__name__ == "PanicException"
        if not known or lacks_memory(error):
            raise
        raise BadInput(f"cannot be loaded as {what}: {first_line(error)}", where=path) from None


def read_model(path: Path, dtype: Any) -> tuple[Any, Any]:
    """Model and tokenizer of a directory, without code from it and without the network."""
    from transformers import AutoModel

    with loading(path, "an encoder"), drawn():
        tokenizer = read_tokenizer(path)
        model, info = AutoModel.from_pretrained(
            path,
            use_safetensors=True,
            dtype=dtype,
            output_loading_info=True,
            local_files_only=True,
            trust_remote_code=False,
        )
    _check_weights(path, model, info["missing_keys"])
    return model, tokenizer


def read_masked(path: Path, seed: int = 0) -> tuple[Any, Any]:
    """A model with its head for guessing hidden pieces, and its tokenizer.

    A head that is missing is new, the same for the same seed.
    """
    from transformers import AutoModelForMaskedLM

    with loading(path, "a language model"), drawn(seed):
        tokenizer = read_tokenizer(path)
        model, info = AutoModelForMaskedLM.from_pretrained(
            path,
            use_safetensors=True,
            output_loading_info=True,
            local_files_only=True,
            trust_remote_code=False,
        )
    inside = f"{model.base_model_prefix}."
    _check_weights(path, model.base_model, {name.removeprefix(inside) for name in info["missing_keys"]})
    if tokenizer.mask_token_id is None:
        raise BadInput("its tokenizer has no mask token", where=path, remedy="a masked language model")
    return model, tokenizer


def read_tokenizer(path: Path) -> Any:
    """The tokenizer of a directory, tried on a word and on what few vocabularies have: some fail then."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True, trust_remote_code=False)
    tokenizer("a \u2603", verbose=False)
    return tokenizer


def _check_weights(path: Path, model: Any, missing: set[str]) -> None:
    """Weights that vectors need must have been there; a pooler or a decoder may be missing."""
    needed = {name for name, _ in encoder_half(model).named_parameters()}
    lost = sorted(
        name for name in missing if "pooler" not in name and (name in needed or _encoder_name(name) in needed)
    )
    if lost:
        raise BadInput(f"{len(lost)} weights are missing, such as {lost[0]}", where=path)


def _encoder_name(name: str) -> str:
    return name.removeprefix("encoder.")


def encoder_half(model: Any) -> Any:
    """The part that reads text: the encoder of an encoder–decoder model, otherwise the whole."""
    two = getattr(model, "encoder", None) is not None and getattr(model, "decoder", None) is not None
    return model.get_encoder() if two else model


@contextmanager
def drawn(seed: int = 0) -> Iterator[None]:
    """Weights that a file lacks, such as a pooler, are drawn anew: here the same ones every time."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


@contextmanager
def quiet() -> Iterator[None]:
    """Without the progress bars and load reports of transformers."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def first_line(error: BaseException) -> str:
    """The first line of what another library said."""
    return str(error).strip().partition("\n")[0][:200] or type(error).__name__
