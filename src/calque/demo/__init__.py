"""A small corpus of our own in six languages, with hand-made links and named entities."""
