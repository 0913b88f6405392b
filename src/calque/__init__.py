"""calque aligns multilingual encoders across languages, and finds out whether it helped."""

__version__ = "0.1.0"
