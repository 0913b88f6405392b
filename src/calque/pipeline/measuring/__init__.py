"""`calque measure …`: one file a measure."""

from calque.pipeline.measuring.cka import CkaRecipe, measure_cka
from calque.pipeline.measuring.common import MeasureRun
from calque.pipeline.measuring.correlation import CorrelationRecipe, measure_correlation
from calque.pipeline.measuring.distances import DistancesRecipe, measure_distances
from calque.pipeline.measuring.examples import ExamplesRecipe, measure_examples
from calque.pipeline.measuring.lexicon import LexiconRecipe, measure_lexicon
from calque.pipeline.measuring.projection import ProjectionRecipe, measure_projection
from calque.pipeline.measuring.sentences import SentencesRecipe, measure_sentences
from calque.pipeline.measuring.whole import WholeRecipe, WholeRun, measure_all
from calque.pipeline.measuring.words import WordsRecipe, measure_words

__all__ = [
    "CkaRecipe",
    "CorrelationRecipe",
    "DistancesRecipe",
    "ExamplesRecipe",
    "LexiconRecipe",
    "MeasureRun",
    "ProjectionRecipe",
    "SentencesRecipe",
    "WholeRecipe",
    "WholeRun",
    "WordsRecipe",
    "measure_all",
    "measure_cka",
    "measure_correlation",
    "measure_distances",
    "measure_examples",
    "measure_lexicon",
    "measure_projection",
    "measure_sentences",
    "measure_words",
]
