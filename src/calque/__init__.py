"""calque aligns multilingual encoders across languages, and finds out whether it helped.

Every verb of the command line is a function of `calque.pipeline`.
"""

import os

# What dependencies would tell their makers, unless a person has said otherwise; read when they are imported.
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

__version__ = "0.1.0"
