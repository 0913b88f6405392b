"""calque aligns multilingual encoders across languages, and finds out whether it helped.

Every verb of the command line is a function of `calque.pipeline`.
"""

__version__ = "0.1.0"
