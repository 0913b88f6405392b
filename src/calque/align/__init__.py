"""Alignment: pairs of vectors to an aligned encoder."""
