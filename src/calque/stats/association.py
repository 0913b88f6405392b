"""Do two things occur together more often than chance would have them?"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from calque.types import Doubles


def g_squared(together: ArrayLike, first: ArrayLike, second: ArrayLike, total: float) -> Doubles:
    """The likelihood ratio of a 2×2 table (G²), negative where they occur together less often than by chance.

    `first` and `second` are how often each occurs in `total`, with the other or without. Over 10.83 is
    p < .001. Shape: all (pairs,).

    >>> g_squared([5, 1], [10, 10], [10, 10], 100).round(1).tolist()
    [12.5, 0.0]
    """
    k, a, b = (np.asarray(column, np.float64) for column in (together, first, second))
    seen = np.stack([k, a - k, b - k, total - a - b + k])
    expected = np.stack([a * b, a * (total - b), (total - a) * b, (total - a) * (total - b)]) / total
    ratio = np.divide(seen, expected, out=np.ones_like(seen), where=(seen > 0) & (expected > 0))
    return np.asarray(np.where(k >= expected[0], 2, -2) * (seen * np.log(ratio)).sum(0))
