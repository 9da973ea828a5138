"""What a plan promises and what a release has spent, in one frozen record."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context
from typing import Any

from cloakgp.core.calibration import delta_slack
from cloakgp.data.people import ALIKE, EXACT
from cloakgp.measure.measurement import Measurement
from cloakgp.measure.unit import PERSON, PERSON_ROWS, ROW, Unit

SPEND = "each release made from a plan spends this once more"
STAGED = "staged"
"""The design of stages that follow from each other: each is designed for what is unknown by then."""


@dataclass(frozen=True)
class Designed:
    """How a stage that stands alone was designed, in numbers that a reader can check. Variances are in y's
    unit.

    `objective` is what the design minimised: the weighted mean noise variance over X* for `mse`, the largest
    for `max`, the weighted mean squared error of denoising for `posterior`, and the geometric mean variance
    over the measured directions for `volume`. `lower_bound` is for any design with the same noise and columns
    of norm 1 at most, or, where the promise is to people, of norm 1 over the number of a person's rows.
    """

    sensitivity: float
    """How far one row of y, or all of one person's, can move the measurements (L2; L1 for Laplace)."""
    noise_scale: float
    """Std of the noise on each measurement."""
    bound: str
    """How the sensitivity was found; "exact" except for some function releases."""
    objective: float
    lower_bound: float
    gap: float
    iterations: int
    status: str
    y_bits: int
    matrix_bits: int
    sigma: int
    """Noise std in lattice steps."""
    sensitivity_steps: int
    """Sensitivity in lattice steps, rounded up."""
    jitter: float
    """What was added to the kernel matrix's diagonal to factorise it; usually 0."""
    bias: float
    """Largest error of the released mean, beside noise, for any y within the bounds: of rounding, if it is
    unbiased; else of what denoising would do to the least favourable y, which says little of real ones."""

    def lines(self, design: str, unbiased: bool) -> list[str]:
        """What a printed certificate says of it."""
        jitter = f", jitter {self.jitter:.2g}" if self.jitter else ""
        accuracy = f"the mean is the GP's, to within {self.bias:.2g} for any y, plus noise{jitter}"
        if not unbiased:  # its worst case over all y is no measure of its error, which is counted
            accuracy = f"the mean is denoised: pulled towards the prior mean, as its error bars count{jitter}"
        return [
            f"  noise         std {self.noise_scale:.6g} on each, for sensitivity {self.sensitivity:.6g}",
            f"  design        {design}: objective {self.objective:.6g}, at least "
            f"{self.lower_bound:.6g} for any design (gap {self.gap:.2%}); "
            f"{self.status} after {self.iterations} iterations",
            f"  lattice       y to 1/2^{self.y_bits} of its range, matrix to 2^-{self.matrix_bits}, "
            f"noise std {self.sigma} steps for sensitivity {self.sensitivity_steps}",
            f"  accuracy      {accuracy}",
        ]


@dataclass(frozen=True)
class Certificate:
    """The guarantee of all stages together, and how it was reached. Nothing in it depends on y."""

    epsilon: float
    delta: float
    unit: str
    neighbours: str
    mu: float
    """Of all stages together: the root of the sum of squares; of Laplace noise, sensitivity over scale."""
    delta_slack: float
    """The part of delta set aside for drawing the noise on a lattice."""
    n_rows: int
    n_measurements: int
    """At most how many numbers are released, in all stages."""
    calibration: str = "analytic"
    design: str = STAGED
    unbiased: bool = False
    """Whether the released mean is the GP's plus noise, and not a shrunken (denoised) one."""
    shares: tuple[float, ...] = (1.0,)
    """Each stage's share of mu squared."""
    before: tuple[tuple[float, float], ...] = ()
    """(epsilon, delta) of each earlier release that is taken into account. They were spent, too."""
    parts: tuple[Designed, ...] = ()
    """How a stage was designed that stands alone. Its fields can be asked of the certificate itself."""
    ids: str = ALIKE
    """How people's ids were compared: "exact" if the custodian chose that, who then answers for nobody having
    two."""
    spend: str = SPEND
    insecure: bool = False

    def __getattr__(self, name: str) -> Any:
        parts = self.__dict__.get("parts", ())
        if len(parts) == 1 and not name.startswith("_"):
            return getattr(parts[0], name)
        raise AttributeError(name)

    @property
    def how(self) -> str:
        """The design in a few words."""
        if self.design == STAGED:
            return f"{len(self.shares)} stage{'s' if len(self.shares) > 1 else ''}"
        bound = "" if self.bound == "exact" else f", {self.bound} bound"
        return f"{self.design} design{bound}"

    @property
    def promise(self) -> str:
        """What is promised, in a few words."""
        return f"({self.epsilon:g}, {self.delta:g})-DP, unit {self.unit}"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and words, ready for JSON."""
        lists = {"shares": list(self.shares), "before": [list(pair) for pair in self.before]}
        return asdict(self) | lists | {"parts": [asdict(part) for part in self.parts]}

    @classmethod
    def from_dict(cls, words: dict[str, Any]) -> Certificate:
        """What :meth:`to_dict` gave."""
        before = tuple((pair[0], pair[1]) for pair in words["before"])
        parts = tuple(Designed(**part) for part in words["parts"])
        return cls(**{**words, "shares": tuple(words["shares"]), "before": before, "parts": parts})

    def __str__(self) -> str:
        lines = ["INSECURE: noise from a seed, not private"] if self.insecure else []
        shares = ", ".join(f"{share:.0%}" for share in self.shares)
        what = "X and y" if self.unit in (ROW.name, PERSON_ROWS.name) else "y"
        rows = f"up to {self.n_rows}" if self.unit == PERSON_ROWS.name else f"{self.n_rows}"
        most = "at most " if self.design == STAGED else ""
        lines += [
            f"({self.epsilon:g}, {self.delta:g})-differential privacy of {what}, unit: {self.unit}",
            f"  neighbours    {self.neighbours}",
            f"  spend         {self.spend}",
            f"  calibration   {self.calibration}, mu = {self.mu:.6g}, delta slack {self.delta_slack:.2g}",
            f"  measurements  {most}{self.n_measurements} numbers from {rows} rows",
        ]
        if self.design == STAGED:
            lines.append(f"  stages        {len(self.shares)}, with {shares} of mu squared")
        for part in self.parts:
            lines += part.lines(self.design, self.unbiased)
        if self.before:
            pairs = ", ".join(f"({epsilon:g}, {delta:g})" for epsilon, delta in self.before)
            lines.append(f"  given         earlier releases, which were spent before, too: {pairs}")
        return "\n".join([*lines, *ids_lines(self.ids)])


def ids_lines(ids: str) -> list[str]:
    """What a printed certificate says of ids."""
    return ["  ids           exact: who is written in two ways counts as two people"] if ids == EXACT else []


def check_ids(ids: str, unit: str) -> bool:
    """Whether what a certificate says of ids makes sense."""
    return ids == ALIKE or (ids == EXACT and unit in (PERSON.name, PERSON_ROWS.name))


DIGITS = {
    "objective": (6, ROUND_HALF_EVEN),
    "lower_bound": (6, ROUND_FLOOR),
    "delta_slack": (3, ROUND_CEILING),
    "jitter": (3, ROUND_HALF_EVEN),
    "bias": (3, ROUND_CEILING),
}
"""Significant digits of numbers that depend on how a machine rounds: more could not be checked elsewhere."""
STATUSES = ("converged", "stopped before the gap was reached")
"""How the search for a design can end."""
CLOSED_FORM = "closed form"
"""The status where nothing was searched for."""


def short(value: float, digits: int, rounding: str) -> float:
    """A number to so many significant digits."""
    return float(Context(prec=digits, rounding=rounding).create_decimal(repr(float(value))))


def designed(measurement: Measurement, **reached: Any) -> Designed:
    """The record of a measurement that stands alone: its integers, and `reached`, how they came about."""
    m, steps = measurement, measurement.sensitivity()
    reached["lower_bound"] = min(reached["lower_bound"], reached["objective"])
    if not 1e-290 < reached["lower_bound"] <= reached["objective"] < 1e290:
        raise ValueError(
            "kernel: its variance and the bounds' width are so far apart that the noise's size is lost in "
            "rounding. Bring them to a common scale."
        )
    reached |= {name: short(reached[name], *how) for name, how in DIGITS.items() if name in reached}
    return Designed(
        sensitivity=steps * m.step,
        noise_scale=m.noise_scale,
        gap=reached["objective"] / reached["lower_bound"] - 1,
        y_bits=m.y_bits,
        matrix_bits=m.matrix_bits,
        sigma=m.sigma,
        sensitivity_steps=steps,
        **reached,
    )


def certify(
    epsilon: float, delta: float, mu: float, n_measurements: int, unit: Unit, n_rows: int, **more: Any
) -> Certificate:
    """The certificate of stages that keep a promise together; `more` are other fields of it."""
    slack = delta_slack(mu, epsilon, delta, n_measurements) if delta else 0.0
    slack = short(slack, *DIGITS["delta_slack"])
    return Certificate(epsilon, delta, *unit, mu, slack, n_rows, n_measurements, **more)


def certify_one(m: Measurement, mu: float, part: Designed, **more: Any) -> Certificate:
    """The certificate of one measurement that keeps a promise alone, with this mu."""
    more |= {"ids": ALIKE if m.people is None else m.people.ids, "parts": (part,)}
    return certify(m.epsilon, m.delta, mu, m.n_measurements, m.unit, m.n_rows, **more)
