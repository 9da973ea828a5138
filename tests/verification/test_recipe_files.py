"""Files of a recipe: what they hold, what verify() makes of X, every lie that X shows, other processors."""

from __future__ import annotations

import zipfile
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cloakgp import GP, Plan, Release, ReleaseFileError, VerificationError, combine, verify
from cloakgp.kernels import EQ
from cloakgp.measurements.recipes import MARGIN, FactoredMeasurement, digest_of
from cloakgp.model import inducing, smoothers
from cloakgp.model.inducing import APPROXIMATIONS
from cloakgp.plans import encoding, out_of_core
from cloakgp.rows import chunks
from cloakgp.rows.merging import Inputs
from cloakgp.verification import recipe

RNG = np.random.default_rng(9)
N = 300
X = RNG.uniform(0, 10, size=(N, 2))
REPEATED = X[RNG.integers(0, 60, size=N)]
X_STAR = RNG.uniform(0, 10, size=(5, 2))
NEW = RNG.uniform(-1, 11, size=(6, 2))
Z = RNG.uniform(0, 10, size=(8, 2))
BOUNDS = (-1.0, 4.0)
Y = RNG.normal(1.5, 2.0, size=N)
PER_ROW = np.resize([0.2, 0.5, 1.5], N)
REFUSED = (VerificationError, ReleaseFileError)

every_approximation = pytest.mark.parametrize("approximation", APPROXIMATIONS)
every_input = pytest.mark.parametrize("data", [X, REPEATED], ids=["distinct rows", "repeated rows"])
every_noise = pytest.mark.parametrize("noise", [0.4, PER_ROW], ids=["one noise", "noise per row"])


def model(approximation="dtc", noise: Any = 0.4, places: Any = Z, kernel: Any = None) -> GP:
    return GP(kernel or EQ(2.0, variance=1.5), noise, BOUNDS, 0.7, places, approximation)


@pytest.fixture(autouse=True)
def many_rows(monkeypatch):
    """Every plan here has a recipe, and rows come in several chunks."""
    monkeypatch.setattr(out_of_core, "DENSE", 1)
    monkeypatch.setattr(chunks, "CHUNK", 100)
    monkeypatch.setattr(chunks, "STEP", 30)


def planned(gp: GP, X: Any = X, X_star: Any = X_STAR, **options: Any) -> Plan:
    plan = gp.plan(X, X_star=X_star, **{"epsilon": 1.0, "delta": 0.01, **options})
    assert isinstance(plan.measurement, FactoredMeasurement)
    return plan


@pytest.fixture
def saved(tmp_path):
    """The path of a release's file."""

    def save(gp: GP, X: Any = X, **options: Any) -> Any:
        path = tmp_path / "release.cloak"
        planned(gp, X, **options).release(Y).save(path)
        return path

    return save


@pytest.fixture
def digest_only(monkeypatch):
    """Files that hold X's digest in its place."""
    monkeypatch.setattr(encoding, "LARGEST_INPUTS", 0)


# Honest files


@every_input
@every_noise
@every_approximation
def test_honest_files_are_verified_and_read(tmp_path, approximation, noise, data):
    plan = planned(model(approximation, noise), data)
    release = plan.release(Y)
    release.save(tmp_path / "file")
    checked = verify(tmp_path / "file")
    assert checked.complete
    assert any("integer sensitivity, from X" in check for check in checked.checks)
    assert 0.00999 < checked.proven_delta <= 0.01
    assert verify(tmp_path / "file", X=data).checks == checked.checks
    loaded = Release.load(tmp_path / "file")
    assert loaded.plan.digest == plan.digest
    for name in ("mean", "noise_std", "z"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(release, name))
    for one, other in zip(
        loaded.predict(NEW, return_std=True), release.predict(NEW, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(loaded.sample(NEW, 2, seed=1), release.sample(NEW, 2, seed=1))


@every_input
@every_noise
@every_approximation
def test_a_file_with_a_digest_is_verified_with_x(tmp_path, digest_only, approximation, noise, data):
    release = planned(model(approximation, noise), data).release(Y)
    release.save(tmp_path / "file")
    with zipfile.ZipFile(tmp_path / "file") as members:
        assert "X.npy" not in members.namelist()
    checked = verify(tmp_path / "file")
    assert checked.unchecked == ("the sensitivity: the file holds only X's digest (give X=)",)
    assert checked.proven_delta is None
    np.save(tmp_path / "X.npy", data)
    for x in (data, data.tolist(), np.load(tmp_path / "X.npy", mmap_mode="r")):
        checked = verify(tmp_path / "file", X=x)
        assert checked.complete
    loaded = Release.load(tmp_path / "file")
    assert loaded.plan.X is None
    assert loaded.plan.digest == release.plan.digest
    np.testing.assert_array_equal(loaded.predict(NEW), release.predict(NEW))
    np.testing.assert_array_equal(loaded.mean, release.mean)
    np.testing.assert_array_equal(
        loaded.uncertainty(NEW, include_noise=1.0).gp, release.uncertainty(NEW, include_noise=1.0).gp
    )


@pytest.mark.parametrize(
    "wrong",
    [
        X[::-1],
        X[:-1],
        np.vstack([X, X[:1]]),
        np.hstack([X, X]),
        X[:, 0],
        X + 1e-12,
        np.where(np.arange(N)[:, None] == N - 1, np.nextafter(X, 0), X),
        REPEATED,
    ],
)
def test_other_inputs_are_refused(saved, digest_only, wrong):
    path = saved(model())
    verify(path, X=X)
    with pytest.raises(VerificationError, match="do not trust this release file"):
        verify(path, X=wrong)


def test_a_file_with_a_digest_is_much_smaller(tmp_path, monkeypatch):
    plan = planned(model())
    plan.release(Y).save(tmp_path / "with")
    monkeypatch.setattr(encoding, "LARGEST_INPUTS", X.nbytes - 1)
    plan.release(Y).save(tmp_path / "without")
    assert (tmp_path / "with").stat().st_size > (tmp_path / "without").stat().st_size + X.nbytes // 2
    monkeypatch.setattr(encoding, "LARGEST_INPUTS", X.nbytes)
    plan.release(Y).save(tmp_path / "again")
    assert Release.load(tmp_path / "again").plan.X is not None


# Files that lack something


def array(name, change):
    def edit(manifest, arrays):
        arrays[name] = np.ascontiguousarray(change(arrays[name]), dtype=arrays[name].dtype)

    return edit


def test_a_column_too_long_for_integers_is_refused_wherever_it_is(saved, tamper):
    """A careful liar makes the digest anew. As an integer the column would wrap, and seem short."""

    def one_row_with_hardly_any_noise(manifest, arrays):
        arrays["noise"][200] = 1e-40
        inputs = Inputs(arrays["X"], arrays["noise"], None)
        manifest["measurement"]["inputs_sha256"] = digest_of(inputs)

    for approximation in APPROXIMATIONS:
        path = saved(model(approximation, PER_ROW, X[195:205]))  # a place is at the row
        tamper(path, one_row_with_hardly_any_noise)
        with pytest.raises(VerificationError, match="its sensitivity is not that of its columns"):
            verify(path)


@pytest.mark.parametrize("name", ["X", "noise"])
def test_arrays_of_another_length_are_refused(saved, tamper, name):
    path = saved(model(noise=PER_ROW))
    tamper(path, array(name, lambda a: a[:-1]))
    with pytest.raises(ReleaseFileError, match=f"{name} has shape"):
        verify(path)


@pytest.mark.parametrize("name", ["factors", "features", "information", "inducing", "sums"])
def test_a_recipe_that_lacks_a_part_is_refused(saved, tamper, name):
    path = saved(model())
    tamper(path, lambda manifest, arrays: arrays.pop(name))
    with pytest.raises(ReleaseFileError, match=r"an array is missing|approximation"):
        verify(path)
    with pytest.raises(ReleaseFileError):
        Release.load(path)


# Other processors


@pytest.fixture
def another_processor(monkeypatch):
    """Kernel values whose last bits are others each time."""

    def begin(relative=1e-15, seed=0):
        rng, right = np.random.default_rng(seed), smoothers.kernel_matrix

        def elsewhere(*arguments):
            K = right(*arguments)
            return K * (1 + relative * rng.uniform(-1, 1, size=K.shape))

        for module in (inducing, recipe):
            monkeypatch.setattr(module, "kernel_matrix", elsewhere)

    return begin


@every_input
@every_approximation
@pytest.mark.parametrize("noise", [0.4, 0.01])
@pytest.mark.parametrize("places", [Z, np.linspace(0, 10, 40)[:, None] * [1.0, 1.0]], ids=["few", "crowded"])
def test_another_processors_last_bits_are_allowed_for(
    saved, another_processor, places, noise, approximation, data
):
    path = saved(model(approximation, noise, places), data)
    for seed in range(5):
        another_processor(seed=seed)
        assert verify(path).complete


def test_a_unit_in_each_entry_is_allowed_for_and_three_are_not(saved, monkeypatch):
    """As if every entry were rounded the other way; and far more than any processor does."""
    assert MARGIN == 2
    path, right = saved(model()), recipe._columns
    for units, allowed in ((-1, True), (1, True), (4, False), (-4, False)):
        monkeypatch.setattr(
            recipe,
            "_columns",
            lambda *arguments, units=units: (
                right(*arguments)[0] + units * np.sign(right(*arguments)[0]),
                right(*arguments)[1],
            ),
        )
        if allowed:
            verify(path)
        else:
            with pytest.raises(VerificationError, match=r"(sensitivity|extent) is not that of its columns"):
                verify(path)


@every_approximation
def test_releases_from_two_processors_are_combined_in_one_basis(approximation):
    """Features have no sign that all machines agree on."""
    gp = model(approximation)
    one, other = planned(gp).release(Y), planned(gp, X_star=NEW).release(Y)
    wanted = combine([one, other]).predict(NEW, return_std=True)
    right = inducing.triangular_whitening
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(out_of_core, "triangular_whitening", lambda kernel, Z: -right(kernel, Z))
        there = planned(gp, X_star=NEW)
    assert not np.allclose(there.measurement.recipe.features.W, other.plan.measurement.recipe.features.W)
    moved = Release(there, _same_answer(other, there))
    for releases in ([one, moved], [moved, one]):
        got = combine(releases).predict(NEW, return_std=True)
        np.testing.assert_allclose(got[0], wanted[0], atol=1e-4)
        np.testing.assert_allclose(got[1], wanted[1], rtol=1e-4)


def _same_answer(release: Release, plan: Plan) -> Any:
    """What a release says, in the measurements of another plan for the same predictions."""
    said = np.linalg.lstsq(plan.reconstruction, release.mean - plan.offset, rcond=None)[0]
    return plan.measurement.midpoint + np.rint(said / plan.measurement.step).astype(np.int64)


# Several releases


def as_matrix(release):
    """The same release, with its measurement as a matrix, for the textbook's formula."""
    m = release.plan.measurement
    columns = m.recipe.columns(np.asarray(m.inputs.X), m.inputs.noise)
    shown = SimpleNamespace(
        matrix=columns if m.groups is None else columns[:, m.groups.labels],
        groups=None,
        **{name: getattr(m, name) for name in ("matrix_bits", "y_bits", "upper", "lower", "sigma")},
    )
    return SimpleNamespace(z=release.z, plan=SimpleNamespace(measurement=shown))


@every_input
@every_noise
@every_approximation
def test_two_releases_together_are_the_textbooks(by_the_book, tmp_path, approximation, noise, data):
    gp = model(approximation, noise)
    plan = planned(gp, data)
    releases = [plan.release(Y), plan.release(Y), planned(gp, data, NEW, epsilon=2.0).release(Y)]
    mean, cov = by_the_book(gp, data, NEW).denoised([as_matrix(release) for release in releases])
    got, std = combine(releases).predict(NEW, return_std=True)
    np.testing.assert_allclose(got, mean, atol=1e-6)
    np.testing.assert_allclose(std, np.sqrt(np.diag(cov)), rtol=1e-6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "LARGEST_INPUTS", 0)
        releases[0].save(tmp_path / "file")
    together = combine([Release.load(tmp_path / "file"), *releases[1:]])
    np.testing.assert_allclose(together.predict(NEW), mean, atol=1e-6)


def test_a_recipe_and_a_matrix_are_not_combined(monkeypatch):
    one = planned(model()).release(Y)
    monkeypatch.setattr(out_of_core, "DENSE", 2**24)
    other = model().plan(X, X_star=X_STAR, epsilon=1.0, delta=0.01).release(Y)
    for releases in ([one, other], [other, one]):
        with pytest.raises(ValueError, match="as a matrix, others as a recipe; combine like with like"):
            combine(releases)


def test_releases_of_other_inputs_or_models_are_not_combined():
    one = planned(model()).release(Y)
    with pytest.raises(ValueError, match="different inputs X"):
        combine([one, planned(model(), X + 0.001).release(Y)])
    with pytest.raises(ValueError, match="one is given twice"):
        combine([one, one])
    for other in (model("fitc"), model(places=Z + 0.1), model(kernel=EQ(2.1, variance=1.5))):
        with pytest.raises(ValueError, match="must all have the same kernel"):
            combine([one, planned(other).release(Y)])
