"""Linear maps from paired vectors: pure functions, one a method, in two plain dicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from calque.errors import BadInput, BadSetting
from calque.geometry.moments import PairMoments, Product
from calque.recipe import Choice
from calque.types import Doubles, Floats, Matrix, Scale, Shift, SpaceMap, Step, Unit


class Method(Choice):
    """How vectors of two languages are brought together.

    centring: each language loses its own mean. z-norm: and is divided by its own standard deviations.
    top-components: each language loses its mean and its own strongest principal components.
    rotation: the source is rotated (or reflected) onto the target. centred-rotation: between the two means.
    iterative-normalisation: rounds of unit length and zero mean a language, then a rotation.
    orthogonal-gradient: a nearly orthogonal matrix learned by minibatches. least-squares: any matrix.
    """

    CENTRING = "centring"
    STANDARDISE = "z-norm"
    TOP_COMPONENTS = "top-components"
    ROTATION = "rotation"
    CENTRED_ROTATION = "centred-rotation"
    ITERATIVE_NORMALISATION = "iterative-normalisation"
    ORTHOGONAL_GRADIENT = "orthogonal-gradient"
    LEAST_SQUARES = "least-squares"


@dataclass(frozen=True)
class SolverOptions:
    """Options of all solvers; each reads its own.

    `shrink` draws the map towards the identity: 0 is the method's own answer, 1 the identity. In a centred
    rotation it is the turn that is drawn; the means, which a few pairs tell well, stay.
    `components` is for top-components, `rounds` for iterative-normalisation, the rest for
    orthogonal-gradient.
    """

    shrink: float = 0.0
    components: int = 3
    rounds: int = 5
    beta: float = 0.01
    steps: int = 20_000
    batch: int = 128
    learning_rate: float = 1e-4
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.shrink <= 1:
            raise BadSetting(f"shrink must lie between 0 and 1, not {self.shrink}")
        for name in ("components", "rounds", "steps", "batch"):
            if getattr(self, name) < 1:
                raise BadSetting(f"{name} must be at least 1, not {getattr(self, name)}")
        if not 0 <= self.beta < 0.5:
            raise BadSetting(f"beta must be at least 0 and below 0.5, not {self.beta}")
        if not self.learning_rate > 0:
            raise BadSetting(f"learning_rate must be above 0, not {self.learning_rate}")


@dataclass(frozen=True)
class PairMaps:
    """What a method does to each side: source vectors go through `moves`, target vectors through `held`."""

    moves: SpaceMap
    held: SpaceMap


#: Paired blocks, source and target (n, d); called again for another pass over the same pairs.
Stream: TypeAlias = Callable[[], Iterator[tuple[Floats, Floats]]]

IDENTITY = PairMaps(SpaceMap(), SpaceMap())


# --------------------------------------------------------------------------------------- closed forms


def centring(moments: PairMoments, options: SolverOptions) -> PairMaps:
    """Subtract (1 − shrink) of each side's own mean."""
    return _each_side(moments, options, lambda mean, side: ())


def standardise(moments: PairMoments, options: SolverOptions) -> PairMaps:
    """Subtract each side's mean and divide by its standard deviation, each by (1 − shrink) of the way.

    The scale is (1 − shrink)/σ + shrink; a dimension that does not vary keeps its scale.
    """

    def scale(mean: Doubles, side: PairMoments) -> tuple[Step, ...]:
        deviation = np.sqrt(side.source_variance)
        # Single-precision noise around a constant is no variance.
        varies = deviation > 1e-6 * np.hypot(mean, deviation)
        inverse = np.divide(1, deviation, out=np.ones_like(deviation), where=varies)
        return (Scale((1 - options.shrink) * inverse + options.shrink),)

    return _each_side(moments, options, scale)


def top_components(moments: PairMoments, options: SolverOptions) -> PairMaps:
    """Subtract each side's mean and project out its strongest principal components (Mu & Viswanath 2018).

    The matrix is I − (1 − shrink) Σ u uᵀ over the leading `components` eigenvectors u of its covariance.
    """
    _require_pairs(moments)
    if options.components >= moments.width:
        raise BadSetting(
            f"components is {options.components} but vectors have {moments.width} dimensions",
            remedy=f"at most {moments.width - 1}",
        )

    def project(mean: Doubles, side: PairMoments) -> tuple[Step, ...]:
        top = np.linalg.eigh(side.source(centred=True))[1][:, -options.components :]
        return (Matrix(np.eye(side.width) - (1 - options.shrink) * top @ top.T),)

    return _each_side(moments, options, project)


def _each_side(
    moments: PairMoments,
    options: SolverOptions,
    after: Callable[[Doubles, PairMoments], tuple[Step, ...]],
) -> PairMaps:
    """Shift by the own mean, then `after(mean, moments with this side as source)`."""
    _require_pairs(moments)
    if options.shrink == 1:
        return IDENTITY
    maps = [
        SpaceMap((Shift(-(1 - options.shrink) * side.source_mean), *after(side.source_mean, side)))
        for side in (moments, moments.swapped())
    ]
    return PairMaps(*maps)


def rotation(moments: PairMoments, options: SolverOptions) -> PairMaps:
    """The orthogonal W nearest to W·s = t: `U Σ Vᵀ = SVD(TᵀS + λI)`, `W = U Vᵀ`."""
    if options.shrink == 1:
        return IDENTITY
    return PairMaps(SpaceMap((Matrix(_rotation(moments, options, centred=False)),)), SpaceMap())


def centred_rotation(moments: PairMoments, options: SolverOptions) -> PairMaps:
    """Rotation about the means: W(s − mean_S) + mean_T; with shrink 1 only the means move."""
    _require_pairs(moments)
    turn = () if options.shrink == 1 else (Matrix(_rotation(moments, options, centred=True)),)
    steps = (Shift(-moments.source_mean), *turn, Shift(moments.target_mean))
    return PairMaps(SpaceMap(steps), SpaceMap())


def least_squares(moments: PairMoments, options: SolverOptions) -> PairMaps:
    """The W with the least ‖S Wᵀ − T‖²: (TᵀS + λI)(SᵀS + λI)⁻¹; the smallest such W when many fit."""
    if options.shrink == 1:
        return IDENTITY
    _require_pairs(moments, 0 if options.shrink else moments.width)
    prior = _prior(moments, options.shrink, centred=False) * np.eye(moments.width)
    values, vectors = np.linalg.eigh(moments.source() + prior)
    kept = values > values[-1] * moments.width * np.finfo(np.float64).eps
    inverse = np.divide(1, values, out=np.zeros_like(values), where=kept)
    solution = (moments.cross() + prior) @ (vectors * inverse) @ vectors.T
    return PairMaps(SpaceMap((Matrix(solution),)), SpaceMap())


def _rotation(moments: PairMoments, options: SolverOptions, *, centred: bool) -> Doubles:
    _require_pairs(moments, 0 if options.shrink else moments.width + centred)
    prior = _prior(moments, options.shrink, centred=centred)
    return nearest_rotation(moments.cross(centred=centred) + prior * np.eye(moments.width))


def _prior(moments: PairMoments, shrink: float, *, centred: bool) -> float:
    """λ: as many pairs (x, x), of the source's mean energy a dimension, as `shrink` of all."""
    return shrink / (1 - shrink) * moments.source_trace(centred=centred) / moments.width


def nearest_rotation(cross: Doubles) -> Doubles:
    """The orthogonal W that maximises tr(Wᵀ cross). Shape: (d, d) to (d, d).

    Where singular values vanish the pairs do not say how to turn; there W stays as near the identity as it
    can, which is also the limit of ever smaller `shrink`.

    >>> nearest_rotation(np.diag([-3.0, 0.0])).round(6).tolist()
    [[-1.0, 0.0], [0.0, 1.0]]
    """
    u, values, vt = np.linalg.svd(cross)
    known = values > values[0] * len(cross) * np.finfo(np.float64).eps
    free_u, free_v = u[:, ~known], vt[~known].T
    a, _, b = np.linalg.svd(free_u.T @ free_v)
    return np.asarray(u[:, known] @ vt[known] + free_u @ (a @ b) @ free_v.T)


def _require_pairs(moments: PairMoments, at_least: int = 0) -> None:
    if not moments.count:
        raise BadInput("no pairs to learn from", remedy="check the links and their filters")
    if moments.count < at_least:
        raise BadSetting(
            f"{moments.count} pairs do not determine a map of {moments.width} dimensions with shrink 0",
            remedy=f"give at least {at_least} pairs, or --shrink 0.1",
        )


CLOSED_FORM: dict[Method, Callable[[PairMoments, SolverOptions], PairMaps]] = {
    Method.CENTRING: centring,
    Method.STANDARDISE: standardise,
    Method.TOP_COMPONENTS: top_components,
    Method.ROTATION: rotation,
    Method.CENTRED_ROTATION: centred_rotation,
    Method.LEAST_SQUARES: least_squares,
}

#: The products that `PairMoments` must gather for each closed form.
NEEDS: dict[Method, frozenset[Product]] = {
    Method.CENTRING: frozenset(),
    Method.STANDARDISE: frozenset(),
    Method.TOP_COMPONENTS: frozenset(("source", "target")),
    Method.ROTATION: frozenset(("cross",)),
    Method.CENTRED_ROTATION: frozenset(("cross",)),
    Method.LEAST_SQUARES: frozenset(("source", "cross")),
}


# ------------------------------------------------------------------------------------------- streamed


def iterative_normalisation(stream: Stream, options: SolverOptions) -> PairMaps:
    """Rounds of {unit length, subtract the mean} a side, then a rotation (Zhang et al. 2019).

    One pass a round and one for the rotation; each round's means are kept, so new vectors replay them.
    """
    if options.shrink == 1:
        return IDENTITY
    moves, held = SpaceMap(), SpaceMap()
    for _ in range(options.rounds):
        moves, held = SpaceMap((*moves.steps, Unit())), SpaceMap((*held.steps, Unit()))
        shifts = centring(_gather(stream, moves, held, frozenset()), options)
        moves = SpaceMap((*moves.steps, *shifts.moves.steps))
        held = SpaceMap((*held.steps, *shifts.held.steps))
    turn = rotation(_gather(stream, moves, held, NEEDS[Method.ROTATION]), options)
    return PairMaps(SpaceMap((*moves.steps, *turn.moves.steps)), held)


def _gather(stream: Stream, moves: SpaceMap, held: SpaceMap, products: frozenset[Product]) -> PairMoments:
    moments = PairMoments(products)
    for source, target in stream():
        moments.add(moves.apply(source.astype(np.float64)), held.apply(target.astype(np.float64)))
    return moments


def orthogonal_gradient(stream: Stream, options: SolverOptions) -> PairMaps:
    """A nearly orthogonal W by minibatches (Wu & Dredze 2020).

    Adam on the mean of ‖W·s − t‖² from the identity, its rate falling linearly to 0; after each update
    `W ← (1 + β)W − β(W Wᵀ)W`. `shrink` adds λ‖W − I‖², λ as for the rotation. Each block is shuffled.
    In single precision: minibatches say no more, and the two products of W a step are most of the time.
    """
    if options.shrink == 1:
        return IDENTITY
    batches = _batches(stream, options)
    source, target = next(batches)
    identity: Floats = np.eye(source.shape[1], dtype=np.float32)
    turn, adam = identity.copy(), _Adam(len(identity))
    pull = options.shrink / (1 - options.shrink)
    for step in range(options.steps):
        error = source @ turn.T - target
        slope = np.asarray(error.T @ source, np.float32)
        slope *= 2 / len(source)
        if pull:
            slope += 2 * pull * float(np.square(source).mean()) * (turn - identity)
        turn -= options.learning_rate * (1 - step / options.steps) * adam.direction(slope)
        stretched = (turn @ turn.T) @ turn
        turn += options.beta * (turn - stretched)
        source, target = next(batches)
    return PairMaps(SpaceMap((Matrix(turn.astype(np.float64)),)), SpaceMap())


class _Adam:
    """Running moments of a d×d slope (Kingma & Ba 2015)."""

    def __init__(self, width: int, first: float = 0.9, second: float = 0.999) -> None:
        self.rates, self.step = (first, second), 0
        self.mean, self.square = np.zeros((2, width, width), np.float32)

    def direction(self, slope: Floats) -> Floats:
        first, second = self.rates
        self.step += 1
        self.mean += (1 - first) * (slope - self.mean)
        self.square += (1 - second) * (slope * slope - self.square)
        root = np.sqrt(self.square / (1 - second**self.step)) + 1e-8
        return np.asarray(self.mean / (1 - first**self.step) / root)


def _batches(stream: Stream, options: SolverOptions) -> Iterator[tuple[Floats, Floats]]:
    """Minibatches without end, pass after pass; what is left of a block joins the next, or is a small one."""
    rng = np.random.default_rng(options.seed)
    while True:
        rest: tuple[Floats, Floats] | None = None
        for block in stream():
            rest = _joined(rest, block, rng)
            whole = len(rest[0]) // options.batch * options.batch
            for start in range(0, whole, options.batch):
                yield rest[0][start : start + options.batch], rest[1][start : start + options.batch]
            rest = rest[0][whole:], rest[1][whole:]
        if rest is None:
            raise BadInput("no pairs to learn from", remedy="check the links and their filters")
        if len(rest[0]):
            yield rest


def _joined(
    rest: tuple[Floats, Floats] | None, block: tuple[Floats, Floats], rng: np.random.Generator
) -> tuple[Floats, Floats]:
    order = rng.permutation(len(block[0]))
    source, target = (side[order].astype(np.float32) for side in block)
    if rest is None:
        return source, target
    return np.concatenate([rest[0], source]), np.concatenate([rest[1], target])


STREAMED: dict[Method, Callable[[Stream, SolverOptions], PairMaps]] = {
    Method.ITERATIVE_NORMALISATION: iterative_normalisation,
    Method.ORTHOGONAL_GRADIENT: orthogonal_gradient,
}


def solve_pairs(method: Method, source: Floats, target: Floats, options: SolverOptions) -> PairMaps:
    """The maps of a method, from paired vectors in hand. Shape: both (n, d)."""
    if method in STREAMED:
        return STREAMED[method](lambda: iter([(source, target)]), options)
    moments = PairMoments(NEEDS[method])
    moments.add(source, target)
    return CLOSED_FORM[method](moments, options)
