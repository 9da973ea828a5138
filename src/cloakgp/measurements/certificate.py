"""What a plan promises and what a release has spent, in one frozen record."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context
from typing import Any

from cloakgp.calibration import delta_slack
from cloakgp.measurements.lattice import Measured
from cloakgp.measurements.unit import OUTCOME, PERSON, PERSON_ROWS, Unit
from cloakgp.rows.people import ALIKE, EXACT

SPEND = "each release made from a plan spends this once more"


@dataclass(frozen=True)
class Certificate:
    """The guarantee and how it was reached. Nothing in it depends on y.

    Variances and standard deviations are in y's unit. `objective` is what the design
    minimised: the weighted mean noise variance over X* for `mse`, the largest for `max`, the
    weighted mean squared error of denoising for `posterior`, and the geometric mean variance over
    the measured directions for `volume`. `lower_bound` is for any design with the same noise and columns of
    norm 1 at most, or, where the promise is to people, of norm 1 over the number of a person's rows.
    """

    epsilon: float
    delta: float
    unit: str
    neighbours: str
    spend: str
    insecure: bool
    calibration: str
    mu: float
    """Sensitivity over noise std; smaller is more private."""
    sensitivity: float
    """How far one row of y, or all of one person's, can move the measurements (L2)."""
    noise_scale: float
    """Std of the noise on each measurement."""
    delta_slack: float
    """The part of delta set aside for drawing the noise on a lattice."""
    n_rows: int
    n_measurements: int
    design: str
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
    unbiased: bool
    """Whether the released mean is the GP's plus noise, and not a shrunken (denoised) one."""
    ids: str = ALIKE
    """How people's ids were compared: "exact" if the custodian chose that, who then answers for nobody having
    two; not written otherwise."""

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and words, ready for JSON."""
        return as_words(self)

    @property
    def _accuracy(self) -> str:
        jitter = f", jitter {self.jitter:.2g}" if self.jitter else ""
        if not self.unbiased:  # its worst case over all y is no measure of its error, which is counted
            return f"the mean is denoised: pulled towards the prior mean, as its error bars count{jitter}"
        return f"the mean is the GP's, to within {self.bias:.2g} for any y, plus noise{jitter}"

    def __str__(self) -> str:
        head = f"({self.epsilon:g}, {self.delta:g})-differential privacy of y, unit: {self.unit}"
        lines = ["INSECURE: noise from a seed, not private"] if self.insecure else []
        lines += [
            head,
            f"  neighbours    {self.neighbours}",
            f"  spend         {self.spend}",
            f"  calibration   {self.calibration}, mu = {self.mu:.6g}, delta slack {self.delta_slack:.2g}",
            f"  measurements  {self.n_measurements} numbers from {self.n_rows} rows, "
            f"sensitivity {self.sensitivity:.6g}, noise std {self.noise_scale:.6g} each",
            f"  design        {self.design}: objective {self.objective:.6g}, at least "
            f"{self.lower_bound:.6g} for any design (gap {self.gap:.2%}); "
            f"{self.status} after {self.iterations} iterations",
            f"  lattice       y to 1/2^{self.y_bits} of its range, matrix to 2^-{self.matrix_bits}, "
            f"noise std {self.sigma} steps for sensitivity {self.sensitivity_steps}",
            f"  accuracy      {self._accuracy}",
            *ids_lines(self.ids),
        ]
        return "\n".join(lines)


def as_words(certificate: Any) -> dict[str, Any]:
    """A certificate's fields, with how ids were compared only if that was chosen."""
    values = asdict(certificate)
    return values if values["ids"] == EXACT else {n: value for n, value in values.items() if n != "ids"}


def ids_lines(ids: str) -> list[str]:
    """What a printed certificate says of ids."""
    return ["  ids           exact: who is written in two ways counts as two people"] if ids == EXACT else []


def has_fields(certificate: Any, names: tuple[str, ...]) -> bool:
    """Whether words are a certificate's: these fields, and ids if they were compared exactly."""
    if not isinstance(certificate, dict) or set(certificate) - {"ids"} != set(names):
        return False
    return "ids" not in certificate or (
        certificate["ids"] == EXACT and certificate["unit"] in (PERSON.name, PERSON_ROWS.name)
    )


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


def written(numbers: dict[str, Any]) -> dict[str, Any]:
    """A certificate's numbers with no more digits than can be checked, and its gap, which follows."""
    kept = {name: short(numbers[name], *how) for name, how in DIGITS.items()}
    return {**numbers, **kept, "gap": kept["objective"] / kept["lower_bound"] - 1}


def certify(measurement: Measured, calibration: str, unit: Unit = OUTCOME, **reached: Any) -> Certificate:
    """The certificate of a measurement: its guarantee, and `reached`, how that came about."""
    m, mu, steps = measurement, measurement.mu(), measurement.sensitivity()
    reached |= {"delta_slack": delta_slack(mu, m.epsilon, m.delta, m.n_measurements)}
    reached["lower_bound"] = min(reached["lower_bound"], reached["objective"])
    if not 1e-290 < reached["lower_bound"] <= reached["objective"] < 1e290:
        raise ValueError(
            "kernel: its variance and the bounds' width are so far apart that the noise's size is lost in "
            "rounding. Bring them to a common scale."
        )
    return Certificate(
        epsilon=m.epsilon,
        delta=m.delta,
        unit=unit.name,
        neighbours=unit.neighbours,
        spend=SPEND,
        insecure=False,
        calibration=calibration,
        mu=mu,
        sensitivity=steps * m.step,
        noise_scale=m.noise_scale,
        n_rows=m.n_rows,
        n_measurements=m.n_measurements,
        y_bits=m.y_bits,
        matrix_bits=m.matrix_bits,
        sigma=m.sigma,
        sensitivity_steps=steps,
        ids=ALIKE if m.people is None else m.people.ids,
        **written(reached),
    )


FIELDS = tuple(field.name for field in fields(Certificate) if field.name != "ids")
"""That are always written."""
