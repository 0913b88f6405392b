"""One function a verb: here the rooms meet. What a verb needs is read when it is first asked for."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calque.pipeline.aligning import AlignRecipe, align
    from calque.pipeline.checkup import Checkup, doctor
    from calque.pipeline.comparing import CompareRecipe, Comparison, compare
    from calque.pipeline.demonstration import WorldRecipe, demo, world
    from calque.pipeline.encoding import EncodeRecipe, Vectors, encode
    from calque.pipeline.exporting import Exported, ExportRecipe, export
    from calque.pipeline.extending import ExtendRecipe, extend
    from calque.pipeline.finetuning import FinetuneRecipe
    from calque.pipeline.linking import LinkRecipe, LinkRun, link
    from calque.pipeline.measuring import (
        CkaRecipe,
        CorrelationRecipe,
        DistancesRecipe,
        ExamplesRecipe,
        LexiconRecipe,
        MeasureRun,
        ProjectionRecipe,
        SentencesRecipe,
        WholeRecipe,
        WholeRun,
        WordsRecipe,
        measure_all,
        measure_cka,
        measure_correlation,
        measure_distances,
        measure_examples,
        measure_lexicon,
        measure_projection,
        measure_sentences,
        measure_words,
    )
    from calque.pipeline.mining import MineRecipe, MineRun, mine
    from calque.pipeline.modelling import PretrainRun
    from calque.pipeline.mteb_encoder import MtebEncoder
    from calque.pipeline.predicting import Predicted, predict
    from calque.pipeline.pretraining import PretrainRecipe, pretrain
    from calque.pipeline.reporting import report, report_tables
    from calque.pipeline.scoring import ScoreRecipe, ScoreRun, score_bitext
    from calque.pipeline.transferring import TransferRun, transfer
    from calque.pipeline.transfersettings import TransferRecipe

__all__ = [
    "AlignRecipe",
    "Checkup",
    "CkaRecipe",
    "CompareRecipe",
    "Comparison",
    "CorrelationRecipe",
    "DistancesRecipe",
    "EncodeRecipe",
    "ExamplesRecipe",
    "ExportRecipe",
    "Exported",
    "ExtendRecipe",
    "FinetuneRecipe",
    "LexiconRecipe",
    "LinkRecipe",
    "LinkRun",
    "MeasureRun",
    "MineRecipe",
    "MineRun",
    "MtebEncoder",
    "Predicted",
    "PretrainRecipe",
    "PretrainRun",
    "ProjectionRecipe",
    "ScoreRecipe",
    "ScoreRun",
    "SentencesRecipe",
    "TransferRecipe",
    "TransferRun",
    "Vectors",
    "WholeRecipe",
    "WholeRun",
    "WordsRecipe",
    "WorldRecipe",
    "align",
    "compare",
    "demo",
    "doctor",
    "encode",
    "export",
    "extend",
    "link",
    "measure_all",
    "measure_cka",
    "measure_correlation",
    "measure_distances",
    "measure_examples",
    "measure_lexicon",
    "measure_projection",
    "measure_sentences",
    "measure_words",
    "mine",
    "predict",
    "pretrain",
    "report",
    "report_tables",
    "score_bitext",
    "transfer",
    "world",
]

_HOMES = {
    "aligning": "AlignRecipe align",
    "checkup": "Checkup doctor",
    "comparing": "CompareRecipe Comparison compare",
    "demonstration": "WorldRecipe demo world",
    "encoding": "EncodeRecipe Vectors encode",
    "exporting": "Exported ExportRecipe export",
    "extending": "ExtendRecipe extend",
    "finetuning": "FinetuneRecipe",
    "linking": "LinkRecipe LinkRun link",
    "measuring": (
        "CkaRecipe CorrelationRecipe DistancesRecipe ExamplesRecipe LexiconRecipe MeasureRun "
        "ProjectionRecipe SentencesRecipe WholeRecipe WholeRun WordsRecipe measure_all "
        "measure_cka measure_correlation measure_distances measure_examples measure_lexicon "
        "measure_projection measure_sentences measure_words"
    ),
    "mining": "MineRecipe MineRun mine",
    "modelling": "PretrainRun",
    "mteb_encoder": "MtebEncoder",
    "predicting": "Predicted predict",
    "pretraining": "PretrainRecipe pretrain",
    "reporting": "report report_tables",
    "scoring": "ScoreRecipe ScoreRun score_bitext",
    "transferring": "TransferRun transfer",
    "transfersettings": "TransferRecipe",
}
#: Which module each name comes from: those of all verbs together take seconds to read.
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
