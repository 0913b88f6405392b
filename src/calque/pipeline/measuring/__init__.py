"""`calque measure …`: one file a measure."""

from calque.pipeline.measuring.common import MeasureRun
from calque.pipeline.measuring.words import WordsRecipe, measure_words

__all__ = ["MeasureRun", "WordsRecipe", "measure_words"]
