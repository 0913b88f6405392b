"""Models as directories: here, or on the Hugging Face hub. Weights are read from safetensors only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from calque.errors import BadInput
from calque.files import file_digest, read_json, text_digest

_WANTED = ["config.json", "model*.safetensors", "model.safetensors.index.json", "tokenizer*", "vocab*",
           "special_tokens_map.json", "added_tokens.json", "merges.txt", "*.spm", "*.model"]  # fmt: skip
_TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model", "*.spm")


def model_directory(name: str, revision: str | None = None) -> Path:
    """The directory of a model: a path is taken as it is, anything else is a name on the hub."""
    path = Path(name).expanduser()
    if path.exists() or name.startswith((".", "/", "~")) or name.endswith("/"):
        if not path.is_dir():
            raise BadInput("no such directory", where=name)
    else:
        path = _from_hub(name, revision)
    _check(path)
    return path


def _from_hub(name: str, revision: str | None) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError

    try:
        return Path(
            snapshot_download(name, revision=revision, allow_patterns=_WANTED, ignore_patterns=["*/*"])
        )
    except (HfHubHTTPError, OSError, ValueError) as error:
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


def weight_files(path: Path) -> list[Path]:
    """The model's own safetensors files; others may lie beside them."""
    single, index = path / "model.safetensors", path / "model.safetensors.index.json"
    if single.is_file():
        return [single]
    if not index.is_file():
        return []
    files = [path / name for name in sorted(set(read_json(index)["weight_map"].values()))]
    for file in files:
        if not file.is_file():
            raise BadInput("named in model.safetensors.index.json, but not here", where=file)
    return files


def weights_digest(path: Path) -> str:
    """SHA-256 over the digests of the model's weight files."""
    return text_digest(*(file_digest(file) for file in weight_files(path)))


def read_model(path: Path, dtype: Any) -> tuple[Any, Any]:
    """Model and tokenizer of a directory, without code from it and without the network."""
    from safetensors import SafetensorError
    from transformers import AutoModel, AutoTokenizer

    local = {"local_files_only": True, "trust_remote_code": False}
    try:
        with quiet(), drawn():
            tokenizer = AutoTokenizer.from_pretrained(path, **local)
            model, info = AutoModel.from_pretrained(
                path, use_safetensors=True, dtype=dtype, output_loading_info=True, **local
            )
    except (OSError, ValueError, KeyError, TypeError, ImportError, RuntimeError, SafetensorError) as error:
        raise BadInput(f"cannot be loaded as an encoder: {first_line(error)}", where=path) from None
    _check_weights(path, model, info["missing_keys"])
    return model, tokenizer


def read_masked(path: Path, seed: int = 0) -> tuple[Any, Any]:
    """A model with its head for guessing hidden pieces, and its tokenizer.

    A head that is missing is new, the same for the same seed.
    """
    from safetensors import SafetensorError
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    local = {"local_files_only": True, "trust_remote_code": False}
    try:
        with quiet(), drawn(seed):
            tokenizer = AutoTokenizer.from_pretrained(path, **local)
            model, info = AutoModelForMaskedLM.from_pretrained(
                path, use_safetensors=True, output_loading_info=True, **local
            )
    except (OSError, ValueError, KeyError, TypeError, ImportError, RuntimeError, SafetensorError) as error:
        raise BadInput(f"cannot be loaded as a language model: {first_line(error)}", where=path) from None
    inside = f"{model.base_model_prefix}."
    _check_weights(path, model.base_model, {name.removeprefix(inside) for name in info["missing_keys"]})
    if tokenizer.mask_token_id is None:
        raise BadInput("its tokenizer has no mask token", where=path, remedy="a masked language model")
    return model, tokenizer


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


def first_line(error: Exception) -> str:
    """The first line of what another library said."""
    return str(error).strip().partition("\n")[0][:200] or type(error).__name__
