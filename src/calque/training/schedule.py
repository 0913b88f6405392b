"""How the learning rate goes: a warm-up, then a schedule. Pure functions of the step."""

from __future__ import annotations

from calque.errors import BadSetting
from calque.recipe import Choice


class Schedule(Choice):
    """What follows the warm-up.

    linear: falls to 0 at the last step. constant: stays. inverse-sqrt: falls with the root of the step.
    """

    LINEAR = "linear"
    CONSTANT = "constant"
    INVERSE_SQRT = "inverse-sqrt"


def warmup_steps(warmup: float, total: int) -> int:
    """Steps of warm-up: a share of all when below 1, otherwise a count.

    >>> warmup_steps(0.1, 200), warmup_steps(4000, 100_000)
    (20, 4000)
    """
    if warmup < 0:
        raise BadSetting(f"warmup is {warmup}", remedy="a share below 1, or a number of steps")
    return int(warmup * total if warmup < 1 else warmup)


def rate(schedule: Schedule, step: int, *, warmup: int, total: int) -> float:
    """What the learning rate is multiplied by at a step, counted from 0.

    >>> [round(rate(Schedule.LINEAR, step, warmup=2, total=6), 2) for step in range(6)]
    [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]
    """
    if step < warmup:
        return (step + 1) / warmup
    if schedule is Schedule.CONSTANT:
        return 1.0
    if schedule is Schedule.INVERSE_SQRT:
        return float((max(warmup, 1) / (step + 1)) ** 0.5)
    return max(0.0, (total - step) / max(1, total - warmup))
