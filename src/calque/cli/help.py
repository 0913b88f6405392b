"""What help shows: examples, choices, panels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from calque.errors import printable

#: What each verb's help ends with: one story in this order, from an empty folder on. A test types all of it.
EXAMPLES: dict[str, tuple[str, ...]] = {
    "demo": ("calque demo --world", "calque demo --out languages"),
    "world": ("calque world --count 1000 --tasks 200 --out world",),
    "pretrain": (
        "calque pretrain --world --sentences 1000 --steps 50 --out model",
        "calque pretrain --text en,far=world/text/en-far.tsv --share no-lower-3 \\\n"
        "    --steps 50 --vocabulary 1000 --out apart",
    ),
    "extend": (
        "calque extend --encoder model --text near=world/text/near.conllu \\\n"
        "    --pieces 300 --steps 20 --out extended",
    ),
    "link": (
        "calque link world/text/en-far.tsv --languages en far --tokenised \\\n    --test 200 --out links",
        "calque link world/text/en-near.tsv --languages en near --tokenised \\\n"
        "    --linker hmm --gold world/text/en-near.links --show 1 --out near",
    ),
    "align": (
        "calque align --encoder world/encoder --pairs links/train --out aligned",
        "calque align --encoder world/encoder --pairs links/train \\\n    --method centring --out centred",
        "calque align --encoder model --pairs links/train \\\n    --method weak --steps 20 --out trained",
        "calque align --encoder world/encoder --supervision dictionary \\\n"
        "    --dictionary world/text/en-far.train.txt --refine 5 --out refined",
    ),
    "measure words": (
        "calque measure words --encoder world/encoder --encoder aligned \\\n"
        "    --pairs links/test --include-seen --out words",
        "calque measure words --encoder centred --encoder aligned \\\n"
        "    --pairs links/test --include-seen --similarity cosine --out cosine",
    ),
    "measure sentences": (
        "calque measure sentences --encoder world/encoder --encoder aligned \\\n"
        "    --pairs links/test --out retrieved",
        "calque measure sentences --encoder world/encoder --similarity margin \\\n"
        "    --text en,far=world/text/en-far.tsv --limit 300 --out margin",
    ),
    "measure projection": (
        "calque measure projection --encoder world/encoder --encoder aligned \\\n"
        "    --pairs links/test --types 6 --out picture",
        "calque measure projection --encoder aligned --pairs links/test \\\n"
        "    --word mother --word year --method pca --out senses",
    ),
    "measure examples": (
        "calque measure examples --encoder world/encoder --encoder aligned \\\n"
        "    --pairs links/train --types 10 --out examples",
    ),
    "measure lexicon": (
        "calque measure lexicon --encoder world/encoder --encoder aligned \\\n"
        "    --dictionary world/text/en-far.test.txt --include-seen --out lexicon",
        "calque measure lexicon --encoder model --encoder trained --pairs links/train \\\n"
        "    --dictionary world/text/en-far.test.txt --include-seen --out anchors",
    ),
    "measure cka": (
        "calque measure cka --encoder model --pairs links/test --out alike",
        "calque measure cka --encoder world/encoder --encoder aligned --same-layer \\\n"
        "    --text en,far=world/text/en-far.tsv --limit 300 --out likeness",
    ),
    "measure distances": (
        "calque measure distances --encoder model --pairs links/test --out distances",
        "calque measure distances --encoder world/encoder --encoder aligned \\\n"
        "    --distance cosine --pairs links/test --out angles",
    ),
    "measure correlation": (
        "calque measure correlation alike distances \\\n    --x cka/linear --y auc --out related",
    ),
    "measure all": (
        "calque measure all --encoder world/encoder --encoder aligned \\\n"
        "    --pairs links/test --dictionary world/text/en-far.test.txt \\\n"
        "    --include-seen --out everything",
    ),
    "transfer": (
        "calque transfer ner --encoder model --train en=world/text/en.conllu \\\n"
        "    --test far=world/text/far.conllu --limit-train 200 --limit-test 100 \\\n"
        "    --epochs 1 --seeds 2 --out entities",
        "calque transfer pos --encoder model --regime features --layers last \\\n"
        "    --train en=world/tasks/pos/en.train.tsv \\\n"
        "    --test far=world/tasks/pos/far.test.tsv --epochs 2 --seeds 2 --out tags",
    ),
    # Of a group's verbs only the first examples are shown, and one run cannot be compared.
    "transfer once more": (
        "calque transfer ner --encoder model --continual links/train \\\n"
        "    --train en=world/text/en.conllu --test far=world/text/far.conllu \\\n"
        "    --limit-train 200 --limit-test 100 --epochs 1 --seeds 2 --out continual",
    ),
    "compare": ("calque compare entities continual --out helped",),
    "check": (
        "calque check first-study",
        "calque check first-study --set align.methods=centring --print",
    ),
    "study": (
        "calque study first-study --dry-run",
        "calque study first-study --set seeds=0 --out study",
    ),
    "predict": (
        "calque predict world/text/near.conllu --model entities --language near \\\n    --out labelled.tsv",
    ),
    "report": (
        "calque report words",
        "calque report helped --tables tex --out helped.tex",
        "calque report everything --tables csv --out everything.csv",
    ),
    "encode": (
        "calque encode world/text/far.conllu --encoder aligned --language far \\\n    --out vectors",
        "calque encode world/text/en.conllu --encoder e5-small-q4 --language en \\\n"
        "    --unit sentences --limit 100 --out sentences",
    ),
    "export": (
        "calque export model --out exported",
        "calque export trained --layer 2 --pooling first --normalise --out shorter",
        "calque export e5-small-q4 --prefix 'query: ' --out queries",
    ),
    "mine": (
        "calque mine world/text/en.conllu world/text/far.conllu --languages en far \\\n"
        "    --encoder aligned --keep 200 --out mined",
    ),
    "score": (
        "calque score world/text/en-far.tsv --languages en far --encoder aligned \\\n"
        "    --keep 500 --show 2 --out scored",
    ),
    "cache ls": ("calque cache ls",),
    "cache prune": ("calque cache prune --to 5",),
    "doctor": ("calque doctor",),
}

#: Values that options take: the members of the recipes' enums, written out because to import those is to load
#: torch, for which neither help nor completion should wait. A test keeps both equal.
CHOICES: dict[str, tuple[str, ...]] = {
    "format": ("tsv", "lines", "triple", "tmx", "conllu", "dataset"),
    "linker": ("eflomal", "fast-align", "hmm", "ibm1", "ibm2", "ibm3", "ibm4",
               "mutual", "iterative", "softmax"),
    "symmetrise": ("intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and"),
    "method": ("centring", "z-norm", "top-components", "rotation", "centred-rotation",
               "iterative-normalisation", "orthogonal-gradient", "least-squares", "l2", "weak", "strong"),
    "cutting": ("wordpiece", "bpe", "unigram"),
    "rows": ("sentences", "streams"),
    "initial": ("mean", "random"),
    "trained": ("all", "embeddings"),
    "share": ("all", "default-anchors", "no-anchors", "extra-anchors", "no-embeddings", "no-lower-3",
              "no-lower-6", "no-embeddings-lower-3", "no-embeddings-lower-6"),
    "batch_of": ("language", "all"),
    "schedule": ("linear", "constant", "inverse-sqrt"),
    "precision": ("float32", "float16", "bfloat16"),
    "regulariser": ("none", "hidden", "parameters", "both"),
    "hidden_words": ("all", "linked"),
    "parameter_form": ("squared", "root"),
    "pulled_to": ("trained", "detached", "frozen"),
    "reduction": ("mean", "sum"),
    "supervision": ("words", "cls", "cls+sep", "all", "sentences", "dictionary", "embeddings",
                    "identical", "numerals"),
    "moves": ("target", "source"),
    "pooling": ("mean", "first", "last"),
    "sentence_pooling": ("mean", "first"),
    "margin": ("ratio", "distance", "absolute"),
    "strategy": ("max", "intersection", "forward", "backward"),
    "variant": ("contextual", "first-occurrence", "program"),
    "projection": ("tsne", "pca"),
    "similarity": ("csls", "cosine", "margin"),
    "regime": ("finetune", "features"),
    "head": ("pooled", "classify", "tag", "crf", "parse", "span"),
    "mix": ("weighted", "sum", "mean"),
    "body": ("none", "bilstm", "transformer"),
    "repair": ("new-span", "last-type", "discard"),
    "answers": ("mlqa", "squad"),
    "select": ("source", "all"),
    "keep_models": ("best", "all", "none"),
    "continual_unit": ("words", "sentences"),
    "continual_form": ("paper", "program"),
    "test": ("seeds-and-items", "seed-t", "item-t", "randomisation"),
    "breakdowns": ("pos", "rank-gap", "script", "pieces", "sense", "seen"),
    "vectors": ("anchors", "embeddings", "static"),
    "oov": ("skip", "wrong"),
    "distance": ("l2", "cosine"),
    "over": ("layers", "languages"),
    "unit": ("words", "sentences"),
    "tables": ("md", "tex", "csv"),
    "device": ("auto", "cpu", "cuda", "mps"),
    "dtype": ("float32", "float16", "bfloat16"),
}  # fmt: skip


class Screen(Console):
    """Text that comes from data shows no more than itself."""

    def render_str(self, text: str, **style: Any) -> Text:
        return super().render_str(printable(text), **style)


screen = Screen()


# Panels of a verb's help; an option that names none is in the first, `--help` in the last.
WHAT, READING, METHODS = "What to compute", "Reading the text", "Settings of single methods"
TRAINING = "Training: l2, weak and strong (steps, batch and learning rate also of orthogonal-gradient)"
ENCODER, RUNNING = "Encoder", "Running and printing"


class Verb(TyperCommand):
    """A command whose help ends with examples."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        for param in _tidied(self.get_params(ctx)):
            param.rich_help_panel = param.rich_help_panel or (RUNNING if param.name == "help" else WHAT)
        super().format_help(ctx, formatter)
        _print_examples(ctx)


class Verbs(TyperGroup):
    """A group of commands, in the order of the story; its help ends with an example of each."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _tidied(self.get_params(ctx))
        super().format_help(ctx, formatter)
        _print_examples(ctx)

    def list_commands(self, ctx: Any) -> list[str]:
        story = " ".join(EXAMPLES).split()
        return sorted(
            super().list_commands(ctx), key=lambda name: story.index(name) if name in story else len(story)
        )


def _tidied(params: Iterable[Any]) -> list[Any]:
    """The options among these; no type is shown where there is no value, or where the name says it."""
    options = []
    for param in params:
        if param.param_type_name == "option":
            param.metavar = "" if param.is_flag else param.metavar
            options.append(param)
        else:
            param.display_type_rich = lambda ctx: None
    return options


def _print_examples(ctx: Any) -> None:
    verb = ctx.command_path.removeprefix(ctx.find_root().command_path).strip()
    begin = "after those of `calque --help`" if verb else "one after the other in an empty folder"
    screen.print(f" Examples, {begin}:\n", highlight=False)
    for command in examples(verb):
        indented = command.replace("\n", "\n  ")
        screen.print(f"  {indented}", markup=False, highlight=False, soft_wrap=True)


def examples(verb: str) -> list[str]:
    """The examples of a verb; of a group of verbs, the first of each."""
    if verb in EXAMPLES:
        return list(EXAMPLES[verb])
    return [told[0] for name, told in EXAMPLES.items() if name.startswith(verb)]


def choice(name: str, told: str, *flags: str, panel: str = WHAT) -> Any:
    """An option with named values: its help lists them, the shell completes them, the recipe checks them."""

    def complete(incomplete: str) -> list[str]:
        return [value for value in CHOICES[name] if value.startswith(incomplete)]

    listed = f"{told}: {', '.join(CHOICES[name])}."
    return typer.Option(*flags, metavar="<name>", help=listed, autocompletion=complete, rich_help_panel=panel)


def training(told: str, *flags: str) -> Any:
    """An option of methods that train."""
    return typer.Option(*flags, help=f"{told}.", rich_help_panel=TRAINING)
