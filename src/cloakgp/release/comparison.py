"""The designs side by side: what error to expect of each, before anything is spent.

What is released has privacy noise; what a reader uses is denoised. Designs differ in both, and only the
second is worth comparing them by. All of it is public: it follows from X, the model and the promise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cloakgp.core.checks import FloatArray
from cloakgp.release import showing
from cloakgp.release.plan import Plan


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Plans for the same promise that differ in their design. Made by :meth:`GP.compare`; print it."""

    plans: dict[str, Plan]
    """By design."""

    @property
    def best(self) -> str:
        """The design whose predictions have the least mean squared error."""
        return min(self.plans, key=lambda design: _rms(self.plans[design], "expected_error"))

    def table(self) -> dict[str, list[Any]]:
        """A column of designs, and for each what to expect of it over the test points."""
        return {
            "design": list(self.plans),
            "expected_error": [_rms(plan, "expected_error") for plan in self.plans.values()],
            "worst_expected_error": [float(plan.expected_error.max()) for plan in self.plans.values()],
            "noise_std": [_rms(plan, "noise_std") for plan in self.plans.values()],
            "worst_noise_std": [float(plan.noise_std.max()) for plan in self.plans.values()],
            "unbiased": [plan.certificate.unbiased for plan in self.plans.values()],
        }

    @property
    def without_privacy(self) -> float:
        """Root mean square of the error that would remain if y itself were published."""
        return _rms(next(iter(self.plans.values())), "gp_std")

    def to_frame(self, *, backend: str = "pandas") -> Any:
        """The same as a table of pandas, polars or pyarrow."""
        return showing.framed({name: np.array(values) for name, values in self.table().items()}, backend)

    def lines(self) -> list[list[str]]:
        """The table in words, a heading first."""
        head = ["design", "expected error", "at worst", "released noise", "at worst"]
        each = zip(*list(self.table().values())[:5], strict=True)
        return [head] + [[name, *(f"{number:.4g}" for number in numbers)] for name, *numbers in each]

    @property
    def notes(self) -> list[str]:
        """What is to be said about the table."""
        return [
            f"Least expected error: {self.best}. Without privacy it would be {self.without_privacy:.4g}.",
            "Expected error is of the denoised prediction, privacy and model together, if the model is "
            "right; released noise is of the released mean.",
        ]

    def __str__(self) -> str:
        rows = self.lines()
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        shown = ["  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)) for row in rows]
        return "\n".join([*(line.rstrip() for line in shown), *self.notes])

    def _repr_html_(self) -> str:
        head, *rows = self.lines()
        facts = {
            row[0]: ", ".join(f"{k} {v}" for k, v in zip(head[1:], row[1:], strict=True)) for row in rows
        }
        return showing.page("Comparison of designs", facts | {"note": " ".join(self.notes)}, False)

    def __repr__(self) -> str:
        return f"<Comparison: {', '.join(self.plans)}; least expected error: {self.best}>"


def _rms(plan: Plan, name: str) -> float:
    values: FloatArray = getattr(plan, name)
    return float(np.sqrt(np.average(values**2, weights=plan.weights)))
