"""Measures of how well languages meet in an encoder."""
