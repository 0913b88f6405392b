"""Masked language models from scratch."""
