"""Toys: one kernel, design, statistic and outcome more, each as edits of a copy of the library.

How many files a toy touches is what it costs to add such a thing. An edit names what must be there once, and
what is put in its place; where the library has changed there, the toy says so, and the edit is written anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Edit:
    path: str
    found: str
    put: str

    def apply(self, root: Path) -> None:
        file = root / self.path
        source = file.read_text(encoding="utf-8")
        if source.count(self.found) != 1:
            raise LookupError(f"{self.path} has {self.found!r} {source.count(self.found)} times, not once")
        file.write_text(source.replace(self.found, self.put), encoding="utf-8")


def before(path: str, found: str, more: str) -> Edit:
    return Edit(path, found, more + found)


def after(path: str, found: str, more: str) -> Edit:
    return Edit(path, found, found + more)


@dataclass(frozen=True)
class Toy:
    most: int
    """How many files it may touch."""
    edits: tuple[Edit, ...]
    plan: str
    """In Python, with `X` and `at`, where predictions are wanted."""
    command: str
    """What the same plan needs on the command line."""
    shown: str
    """What `cloakgp show` says of the release."""
    unknown: str
    """What the library says that has no such thing."""
    y: str = "np.sin(X / 9) * 2 + 3"
    measured: str = "Inside"
    """The statistic of the first stage."""

    @property
    def files(self) -> set[str]:
        return {edit.path for edit in self.edits}


KERNEL = Toy(
    3,
    (
        before(
            "kernels/families.py",
            "@registered\nclass Matern12(",
            '''@registered
class Cauchy(Stationary):
    """variance / (1 + r²): what is far apart is still a little alike. Parameters as for :class:`EQ`."""

    def _shape(self, r2: Array, xp: Any) -> Array:
        return 1.0 / (1.0 + r2)


''',
        ),
        before(
            "kernels/__init__.py",
            "from cloakgp.kernels.families import Linear as Linear\n",
            "from cloakgp.kernels.families import Cauchy as Cauchy\n",
        ),
    ),
    "GP(kernels.Cauchy(9.0, variance=4.0), 0.2, (0, 6), 3.0).plan(X, X_star=at, **PROMISE)",
    '--bounds 0 6 --kernel "Cauchy(9, variance=4)" --noise 0.2',
    "Cauchy(lengthscale=9.0, variance=4.0)",
    "has no attribute 'Cauchy'",
)
DESIGN = Toy(
    3,
    (
        before(
            "designs/solve.py",
            "@dataclass(frozen=True)\nclass Design:",
            '''def plain(
    smoother: Smoother, weights: FloatArray, gap: float, noise_variance: float, last: Solution | None = None
) -> Solution:
    """Every prediction by itself, with noise for the row that counts most in all of them together."""
    columns = on_host(smoother.columns(slice(0, smoother.n_rows)))
    size, own = float(np.linalg.norm(columns, axis=0).max()), np.eye(len(columns))
    return Solution(
        "plain", own * size, size**2, mse(smoother, weights, gap, 1.0).lower_bound, 0, "converged", own / size
    )


''',
        ),
        Edit("designs/solve.py", '"posterior", "volume"]', '"posterior", "volume", "plain"]'),
        after(
            "designs/solve.py",
            "DESIGNS = {\n",
            '    "plain": Design(plain, MEAN, "each prediction by itself"),\n',
        ),
    ),
    'GP(EQ(9.0, variance=4.0), 0.2, (0, 6), 3.0).plan(X, X_star=at, design="plain", **PROMISE)',
    '--bounds 0 6 --kernel "EQ(9, variance=4)" --noise 0.2 --design plain',
    "plain: each prediction by itself",
    "got 'plain'",
)
TOYS = {"kernel": KERNEL, "design": DESIGN}
OUTCOME = Toy(
    4,
    (
        before(
            "model/outcome.py",
            "class OneOf(YesNo):",
            '''class Share(YesNo):
    """From 0 to 1, with mean Phi(f); `noise` is what the most variance there can be is multiplied by."""

    name, words, plural = "share", "shares from 0 to 1", "shares"
    lead = "Shares by a Gaussian process, from"
    told, told_as, noise_words = "share", "the share to be expected", "part of the most variance there can be"
    cells, class_numbers = NUMBERS, (0,)
    noise = (0.01, 0.5)
    in_detail, told_of, named = Outcome.in_detail, Outcome.told_of, Outcome.named


''',
        ),
        Edit("model/outcome.py", '["real", "yes/no", "count"]', '["real", "yes/no", "count", "share"]'),
        Edit("model/outcome.py", "(Number, YesNo, Count, OneOf)}", "(Number, YesNo, Count, Share, OneOf)}"),
        Edit("cli/options.toml", '["real", "yes/no", "count"]', '["real", "yes/no", "count", "share"]'),
    ),
    'AutoGP(outcome="share", stages=2).plan(X, X_star=at, **PROMISE)',
    "--outcome share --stages 2",
    "shares from 0 to 1",
    "got 'share'",
    "(np.sin(X / 9) + 1) / 2",
)
STATISTIC = Toy(
    4,
    (
        before(
            "measure/statistics.py",
            "def bits_within(",
            '''@dataclass(frozen=True, eq=False)
class Sides(Statistic):
    """Which end of its bounds an outcome is nearer to: 2^b, or -2^b; 0 if it is missing."""

    centred: bool = True

    @property
    def span(self) -> float:
        return super().span / 2

    @property
    def change(self) -> int:
        return 4 << 2 * self.y_bits


''',
        ),
        Edit("private/outcomes.py", "Present, Statistic\n", "Present, Sides, Statistic\n"),
        before(
            "private/outcomes.py",
            "_READ = {",
            """def _sides(statistic: Any, y: checks.FloatArray) -> tuple[IntArray, NDArray[np.bool_]]:
    finite = np.isfinite(y)
    upper = 2 * (np.where(finite, y, statistic.lower) > statistic.origin).astype(np.int64) - 1
    return (np.where(finite, upper, 0) * statistic.largest)[:, None], finite


""",
        ),
        after("private/outcomes.py", "    Present: _present,\n", "    Sides: _sides,\n"),
        Edit("release/stages.py", "Present, Statistic, for", "Present, Sides, Statistic, for"),
        before(
            "release/stages.py",
            "        return for_outcomes((lower, upper), self.outcome.curves",
            """        if self.outcome.name == "yes/no" and self.population is None:
            return Sides(lower, upper)
""",
        ),
        Edit(
            "verification/guarantee.py",
            "    change = 2 if several else 1",
            '    change = 4 if manifest["model"]["outcome"] == "yes/no" else 2 if several else 1',
        ),
    ),
    'AutoGP(outcome="yes/no", stages=2).plan(X, X_star=at, **PROMISE)',
    "--outcome yes/no --stages 2",
    "yes or no",
    "measures Inside",
    "np.sin(X / 9) > 0",
    "Sides",
)
TOYS = {"kernel": KERNEL, "design": DESIGN, "outcome": OUTCOME, "statistic": STATISTIC}
