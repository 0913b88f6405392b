"""A small invented universe: parallel sentences with every annotation, drawn from a seed."""

from calque.text.world.constructions import CONSTRUCTIONS, Construction, construction
from calque.text.world.doors import world_pairs, world_sentences, write_tasks, write_world
from calque.text.world.draws import LANGUAGES, WorldSentence, generate
from calque.text.world.senses import word_senses
from calque.text.world.surface import WorldSide
from calque.text.world.tasks import world_task

__all__ = [
    "CONSTRUCTIONS",
    "LANGUAGES",
    "Construction",
    "WorldSentence",
    "WorldSide",
    "construction",
    "generate",
    "word_senses",
    "world_pairs",
    "world_sentences",
    "world_task",
    "write_tasks",
    "write_world",
]
