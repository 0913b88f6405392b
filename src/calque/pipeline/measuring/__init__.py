"""`calque measure …`: one file a measure."""

from calque.pipeline.measuring.common import MeasureRun
from calque.pipeline.measuring.sentences import SentencesRecipe, measure_sentences
from calque.pipeline.measuring.words import WordsRecipe, measure_words

__all__ = ["MeasureRun", "SentencesRecipe", "WordsRecipe", "measure_sentences", "measure_words"]
