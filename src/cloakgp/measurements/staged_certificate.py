"""What a release in stages promises: one record for all of its stages."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from cloakgp.calibration import delta_slack
from cloakgp.measurements.certificate import DIGITS, SPEND, Certificate, as_words, ids_lines, short
from cloakgp.measurements.unit import OUTCOME, PERSON_ROWS, ROW, Unit
from cloakgp.rows.people import ALIKE

DESIGN = "staged"


@dataclass(frozen=True)
class StagedCertificate:
    """The guarantee of all stages together, and how it was reached. Nothing in it depends on y."""

    epsilon: float
    delta: float
    unit: str
    neighbours: str
    spend: str
    insecure: bool
    calibration: str
    mu: float
    """Of all stages together: the root of the sum of their squares is at most this."""
    delta_slack: float
    """The part of delta set aside for drawing the noise on a lattice."""
    n_rows: int
    n_measurements: int
    """At most how many numbers are released, in all stages."""
    design: str
    shares: tuple[float, ...]
    """Each stage's share of mu squared."""
    before: tuple[tuple[float, float], ...] = ()
    """(epsilon, delta) of each earlier release that is taken into account. They were spent, too."""
    unbiased: bool = False
    """Predictions are denoised, and so shrunk towards what is believed beforehand."""
    ids: str = ALIKE
    """How people's ids were compared; as in :class:`cloakgp.measurements.certificate.Certificate`."""

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and words, ready for JSON."""
        return as_words(self) | {"shares": list(self.shares), "before": [list(pair) for pair in self.before]}

    def __str__(self) -> str:
        lines = ["INSECURE: noise from a seed, not private"] if self.insecure else []
        parts = ", ".join(f"{share:.0%}" for share in self.shares)
        what = "X and y" if self.unit in (ROW.name, PERSON_ROWS.name) else "y"
        rows = f"up to {self.n_rows}" if self.unit == PERSON_ROWS.name else f"{self.n_rows}"
        lines += [
            f"({self.epsilon:g}, {self.delta:g})-differential privacy of {what}, unit: {self.unit}",
            f"  neighbours    {self.neighbours}",
            f"  spend         {self.spend}",
            f"  calibration   {self.calibration}, mu = {self.mu:.6g}, delta slack {self.delta_slack:.2g}",
            f"  measurements  at most {self.n_measurements} numbers from {rows} rows",
            f"  stages        {len(self.shares)}, with {parts} of mu squared",
        ]
        if self.before:
            pairs = ", ".join(f"({epsilon:g}, {delta:g})" for epsilon, delta in self.before)
            lines.append(f"  given         earlier releases, which were spent before, too: {pairs}")
        lines += ids_lines(self.ids)
        return "\n".join(lines)


def certify_stages(
    epsilon: float,
    delta: float,
    mu: float,
    n_rows: int,
    most: int,
    shares: tuple[float, ...],
    before: tuple[tuple[float, float], ...] = (),
    unit: Unit = OUTCOME,
    ids: str = ALIKE,
) -> StagedCertificate:
    """The certificate of stages with these shares of mu squared, after releases with these promises."""
    return StagedCertificate(
        epsilon=epsilon,
        delta=delta,
        unit=unit.name,
        neighbours=unit.neighbours,
        spend=SPEND,
        insecure=False,
        calibration="analytic",
        mu=mu,
        delta_slack=short(delta_slack(mu, epsilon, delta, most), *DIGITS["delta_slack"]),
        n_rows=n_rows,
        n_measurements=most,
        design=DESIGN,
        shares=shares,
        before=before,
        ids=ids,
    )


AnyCertificate = Certificate | StagedCertificate
FIELDS = tuple(field.name for field in fields(StagedCertificate) if field.name != "ids")
