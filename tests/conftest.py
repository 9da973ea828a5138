"""What several test files need: small models, their textbook answers, and files to tamper with."""

from __future__ import annotations

import gc
import os
import secrets
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from html import escape
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

import cloakgp
from cloakgp.designs import DESIGNS
from cloakgp.files import container
from cloakgp.kernels import EQ, as_kernel
from cloakgp.model import hyperprior
from cloakgp.model.hyperprior import Known
from cloakgp.posterior import mixture
from cloakgp.private import noise, room
from cloakgp.testing import InsecureWarning, insecure_generator, insecure_seed

gc.disable()  # until all tests are collected: till then hardly anything is let go
settings.register_profile("cloakgp", deadline=None, database=None, max_examples=50)
settings.load_profile("cloakgp")
SEED = "CLOAKGP_TESTS_SEED"


class Luck:
    """Noise that tests and fixtures draw, by one seed for a whole run, which the next run has another of.

    So a statistical test must pass whatever is drawn, and says how likely it is not to. A failure is
    repeated with the seed that the run printed: each test and fixture has numbers of its own, in any order
    and process. The tests of the noise itself, in the folders `private` and `privacy` and of the audit, have
    OpenDP's, and so has what runs in other processes.
    """

    seed = 0
    rng: np.random.Generator | None = None

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        before = self.rng
        opendp = name.startswith(("tests/private/", "tests/privacy/", "tests/test_audit.py"))
        self.rng = None if opendp else np.random.default_rng([self.seed, zlib.crc32(name.encode())])
        try:
            yield
        finally:
            self.rng = before

    def draws(self) -> np.random.Generator | None:
        """Nothing where OpenDP or an insecure seed is asked for."""
        return self.rng if insecure_generator() is None else None

    def add_noise(self, exact: Any, sigma: int) -> Any:
        rng = self.draws()
        if rng is None:
            return noise.add_noise(exact, sigma)
        return exact + np.rint(rng.normal(size=exact.shape) * sigma).astype(np.int64)

    def add_laplace(self, exact: Any, scale: int) -> Any:
        rng = self.draws()
        if rng is None:
            return noise.add_laplace(exact, scale)
        return exact + np.rint(rng.laplace(size=exact.shape) * scale).astype(np.int64)

    def noisy_minimum(self, scores: Any) -> Any:
        rng, checked = self.draws(), noise.noisy_minimum(scores)
        if rng is None:
            return checked
        return lambda exact: np.argmin(exact - rng.gumbel(size=len(exact)) * scores.scale)


luck = Luck()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Before workers are started, which have the same seed from the environment; Hypothesis has it, too."""
    luck.seed = int(os.environ.setdefault(SEED, str(secrets.randbelow(2**32))))
    if config.getoption("hypothesis_seed", None) is None:
        config.option.hypothesis_seed = str(luck.seed)
    for name in ("add_noise", "add_laplace", "noisy_minimum"):
        setattr(room, name, getattr(luck, name))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests marked `torch` are skipped without it. One that needs it and is not marked fails there."""
    if find_spec("torch") is None:
        for item in items:
            if item.get_closest_marker("torch"):
                item.add_marker(pytest.mark.skip("torch is not installed, pip install torch==2.13.0"))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say by which seed noise was drawn; and in one line how many tests were skipped, and why."""
    terminalreporter.write_line(f"noise of this run: {SEED}={luck.seed}")
    skipped = terminalreporter.stats.get("skipped", [])
    if skipped:
        reasons = Counter(" ".join(str(test.longrepr[2]).split()) for test in skipped)
        listed = "; ".join(f"{n}: {why.removeprefix('Skipped: ')[:90]}" for why, n in reasons.most_common())
        terminalreporter.write_line(
            f"!!! {len(skipped)} tests were SKIPPED ({listed}) !!!", red=True, bold=True
        )


def pytest_collection_finish() -> None:
    """Modules and tests stay to the end: nobody need look through them for what can be let go.

    Nor through what a test has just made, every 700 objects.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    with luck.of(item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Iterator[None]:
    """A fixture draws the same whichever test asks for it first."""
    param = getattr(request, "param_index", 0)
    with luck.of(f"{request.node.nodeid or fixturedef.baseid} {fixturedef.argname} {param}"):
        return (yield)


@pytest.fixture(scope="session", params=[name for name in DESIGNS if name != "posterior"])
def design(request: pytest.FixtureRequest) -> str:
    """Every design whose predictions are unbiased; `posterior`'s are not (docs/designs.md)."""
    return str(request.param)


class Dense:
    """A smoother whose C is given, and y's prior covariance K = I + A A', with a random A if absent."""

    jitter = 0.0

    def __init__(self, C: Any, A: Any = None) -> None:
        self.C = np.asarray(C, dtype=float)
        self.n_outputs, self.n_rows = self.C.shape
        self.posterior_variance = np.ones(self.n_outputs)
        self.A = np.random.default_rng(7).normal(size=(self.n_rows, 2)) if A is None else np.asarray(A)
        self.cross = self.times_covariance(self.C).T
        self.explained_variance = np.sum(self.C * self.cross.T, axis=1)

    @property
    def covariance(self) -> Any:
        return np.eye(self.n_rows) + self.A @ self.A.T

    def times_covariance(self, B: Any) -> Any:
        return B + (B @ self.A) @ self.A.T

    def columns(self, rows: Any) -> Any:
        return np.ascontiguousarray(self.C[:, rows])


@pytest.fixture(scope="session")
def dense() -> type[Dense]:
    return Dense


@pytest.fixture(scope="session")
def setting() -> SimpleNamespace:
    """A small model with its data. Some of y lies outside the bounds."""
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 10, size=(12, 1))
    y = rng.normal(2.0, 3.0, size=12)
    gp = cloakgp.GP(EQ(2.0, variance=1.5), noise=0.4, bounds=(-1.0, 4.0), mean=0.7)
    return SimpleNamespace(gp=gp, X=X, y=y, X_star=np.linspace(0, 10, 4)[:, None])


@pytest.fixture(scope="session")
def make_plan(setting: SimpleNamespace) -> Callable[..., cloakgp.Plan]:
    """A plan of the small model; `noise=`, `kernel=` and so on change it, the rest goes to `plan`."""

    def make(**changes: Any) -> cloakgp.Plan:
        model = {name: changes.pop(name, getattr(setting.gp, name)) for name in MODEL}
        arguments = {"X": setting.X, "X_star": setting.X_star, "epsilon": 1.0, "delta": 0.01, **changes}
        return cloakgp.GP(**model).plan(**arguments)

    return make


MODEL = ("kernel", "noise", "bounds", "mean")


def by_row(measurement: Any) -> Any:
    """(q, N) the integer matrix with a column for each row of y, also where rows share one."""
    m = measurement
    return m.matrix if m.groups is None else m.matrix[:, m.groups.labels]


@pytest.fixture(scope="session")
def noiseless() -> Callable[..., cloakgp.Release]:
    """The release that no noise would give: everything but the noise, without the private room."""

    def exact(plan: cloakgp.Plan, y: Any) -> cloakgp.Release:
        m = plan.measurement
        share = (np.clip(np.asarray(y, dtype=float), m.lower, m.upper) - m.lower) / (m.upper - m.lower)
        y_int = [round(entry * 2**m.y_bits) for entry in share.tolist()]
        z = [sum(b * v for b, v in zip(row, y_int, strict=True)) for row in by_row(m).tolist()]
        return as_release(plan, np.array(z, dtype=np.int64))

    return exact


def as_release(plan: cloakgp.Plan, z: Any) -> cloakgp.Release:
    """The release of one stage that stands alone, from these integers and nothing else."""
    stage = replace(plan.first, answer=z)
    return cloakgp.Release(plan, (stage,), (Known(plan.gp),), np.ones(1))


@pytest.fixture(scope="session")
def answered() -> Callable[[cloakgp.Plan, Any], cloakgp.Release]:
    return as_release


@pytest.fixture(scope="session")
def textbook() -> Callable[..., tuple[Any, Any]]:
    """Posterior mean and std of a GP, by the formula (Rasmussen & Williams 2006, eq. 2.25-2.26)."""

    def posterior(kernel: Any, noise: Any, mean: float, X: Any, X_star: Any, y: Any) -> tuple[Any, Any]:
        k = as_kernel(kernel)
        covariance = k(X) + np.diag(np.broadcast_to(np.asarray(noise, dtype=float), (len(X),)))
        C = np.linalg.solve(covariance, k(X, X_star)).T
        variance = k.diag(X_star) - np.sum(C.T * k(X, X_star), axis=0)
        return mean + C @ (np.asarray(y, dtype=float) - mean), np.sqrt(np.maximum(variance, 0))

    return posterior


@pytest.fixture(scope="session")
def by_the_book() -> Callable[..., Book]:
    return Book


class Book:
    """A GP, exact or sparse (Quinonero-Candela & Rasmussen 2005), in dense matrices with all rows of X.

    `K` is the prior covariance of y, `cross` that of y and f(X_new), `prior` that of f(X_new).
    """

    def __init__(self, gp: Any, X: Any, X_new: Any, Z: Any = None) -> None:
        X, X_new = (np.asarray(x, dtype=float).reshape(len(x), -1) for x in (X, X_new))
        k, S = as_kernel(gp.kernel), np.broadcast_to(np.asarray(gp.noise, dtype=float), len(X))
        self.gp, self.prior = gp, k(X_new)
        if gp.inducing is None:
            self.K, self.cross = k(X) + np.diag(S), k(X, X_new)
        else:
            Z = gp.inducing if Z is None else Z
            to_X, to_new = k(Z, X), k(Z, X_new)
            Q = to_X.T @ np.linalg.solve(k(Z), to_X)
            rest = np.diag(k(X) - Q) if gp.approximation == "fitc" else 0.0
            self.K, self.cross = Q + np.diag(S + rest), to_X.T @ np.linalg.solve(k(Z), to_new)
        self.C = np.linalg.solve(self.K, self.cross).T
        self.explained = np.sum(self.C.T * self.cross, axis=0)
        self.variance = np.diag(self.prior) - self.explained

    def mean(self, y: Any) -> Any:
        """Posterior mean of f(X_new) given y."""
        return self.gp.mean + self.C @ (np.asarray(y) - self.gp.mean)

    def denoised(self, releases: list[Any]) -> tuple[Any, Any]:
        """Posterior mean and covariance of f(X_new) given what was released (docs/designs.md)."""
        rows, values, variances = [], [], []
        for release in releases:
            m = release.plan.measurement
            B = by_row(m) / 2.0**m.matrix_bits
            unit = (m.upper - m.lower) / 2.0 ** (m.matrix_bits + m.y_bits)
            rows.append(B)
            values.append(release.z * unit + B.sum(axis=1) * (m.lower - self.gp.mean))
            variances.append(np.full(len(B), (m.sigma * unit) ** 2))
        B = np.vstack(rows)
        D = B @ self.K @ B.T + np.diag(np.concatenate(variances))
        G = np.linalg.solve(D, B @ self.cross).T
        return self.gp.mean + G @ np.concatenate(values), self.prior - G @ B @ self.cross


@pytest.fixture(scope="session")
def seeded() -> Callable[[int], Any]:
    """The insecure seed, with the warning that it must give."""

    @contextmanager
    def block(seed: int) -> Iterator[None]:
        with pytest.warns(InsecureWarning, match="INSECURE"), insecure_seed(seed):
            yield

    return block


@contextmanager
def learned_among_few() -> Iterator[None]:
    """Models are learned among few: a fraction of the work, where nobody asks how well it was learned."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hyperprior, "_GRID", (4, 2, 3, 3))
        patch.setattr(hyperprior, "_SOBOL", 2**5)
        few = mixture._Limits(drawn=2**4, kept=12, go_on=24)
        patch.setattr(mixture, "_MANY", few)
        patch.setattr(mixture, "_LITTLE", few)
        yield


@pytest.fixture(scope="module")
def few_models() -> Iterator[None]:
    with learned_among_few():
        yield


@pytest.fixture
def few_models_here() -> Iterator[None]:
    """For one test of a file."""
    with learned_among_few():
        yield


@pytest.fixture
def drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports' pictures are drawn for one window, not rendered: that takes seconds. See test_reports.py.

    The words in them are in the report then, where a search finds them, as it does not in an image.
    """

    def figure(picture: Any) -> str:
        from matplotlib.text import Text

        words = [text.get_text() for text in picture.figure().findobj(Text)]
        return f"<figure>{escape(picture.caption)} {escape(' '.join(words))}</figure>"

    monkeypatch.setattr("cloakgp.workflow.report._figure", figure)


@pytest.fixture
def saved(make_plan: Any, setting: Any, tmp_path: Path) -> Callable[..., Path]:
    """The path of a freshly saved release; `sign_with=` signs it, the rest goes to `make_plan`."""

    def save(name: str = "release.cloak", *, sign_with: Any = None, **changes: Any) -> Path:
        path = tmp_path / name
        make_plan(**changes).release(setting.y).save(path, sign_with=sign_with)
        return path

    return save


@pytest.fixture(scope="session")
def tamper() -> Callable[..., None]:
    """Edit a file's contents and write it again with digests that are right: a careful liar."""

    def edit(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], Any]) -> None:
        manifest, arrays, signature = container.unpack(path.read_bytes())
        manifest = {key: value for key, value in manifest.items() if key not in ("members", "sha256")}
        arrays = {name: array.copy() for name, array in arrays.items()}
        change(manifest, arrays)
        path.write_bytes(container.pack(manifest, arrays, signature))

    return edit


@pytest.fixture(scope="session")
def private_key() -> Any:
    pytest.importorskip("cryptography")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
