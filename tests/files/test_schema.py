"""The closed schema over every kind of file: the same bytes again, and nothing in them that is not in it."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as sk

import cloakgp
from cloakgp import ReleaseFileError, VerificationError, verify
from cloakgp.designs import DESIGNS
from cloakgp.files import container, reading
from cloakgp.files.schema import FUNCTION, MEANS, PLAN_ARRAYS, STAGE_ARRAYS
from cloakgp.kernels import EQ, Constant, Gibbs, Linear, Matern32, as_kernel
from cloakgp.measure.certificate import STAGED
from cloakgp.measure.unit import UNITS
from cloakgp.model.inducing import APPROXIMATIONS
from cloakgp.model.outcome import OUTCOMES
from cloakgp.release.plan import Plan, load_release
from cloakgp.release.planner import BOUNDS
from verification import forging

pytestmark = pytest.mark.usefixtures("few_models")

KERNELS = {
    "EQ": EQ(2.0, variance=0.1),
    "sum and product": EQ([2.0]) * Matern32(3.0, active_dims=[0]) + Constant(0.3),
    "linear": Linear(3.0),
    "function": lambda X, Z: np.minimum(X, Z.T) + 1.0,
    "scikit-learn": 1.5 * sk.RBF(2.0),
    "scikit-learn, not ours": sk.Matern(2.0, nu=0.7),
    "Gibbs": Gibbs(([0.0, 8.0], [1.0, 3.0])),
    "sum with a function": EQ(2.0) + (lambda X, Z: np.minimum(X, Z.T)),
}
every_kind = pytest.mark.parametrize("kind", forging.PLANS)
MINIMUM = KERNELS["function"]


@pytest.fixture(scope="module")
def contents(tmp_path_factory, few_models):
    folder = tmp_path_factory.mktemp("files")
    return {kind: forging.opened(forging.honest(kind, folder))[:2] for kind in forging.PLANS}


@pytest.fixture
def written(contents, tmp_path):
    """A file with changed contents, and right digests."""

    def write(kind, change):
        manifest, arrays = copy.deepcopy(contents[kind])
        change(manifest, arrays)
        (tmp_path / "file").write_bytes(container.pack(manifest, arrays))
        return tmp_path / "file"

    return write


def refused(path):
    """By whoever reads it, and as no file of this schema."""
    for reader in (reading.read, load_release, verify):
        with pytest.raises(ReleaseFileError):
            reader(path)


# The same again


@every_kind
def test_what_was_loaded_is_written_again_to_the_byte(contents, written, tmp_path, kind):
    path = written(kind, lambda manifest, arrays: None)
    release = cloakgp.load(path)
    release.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    kept = release.plan.to_bytes()
    assert Plan.from_charged(kept).to_bytes() == kept
    assert Plan.from_charged(kept).digest == release.plan.digest
    path.write_bytes(kept)
    with pytest.raises(ReleaseFileError, match="holds a plan"):
        verify(path)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("given", [{}, {"kernel": True}], ids=["kernel from file", "kernel given"])
def test_every_kernel_comes_back(saved, setting, kernel, given):
    path = saved(noise=np.geomspace(0.1, 3, 12), kernel=kernel)
    loaded = cloakgp.load(path, **dict.fromkeys(given, kernel))
    assert loaded.plan.gp.kernel.to_spec() == as_kernel(kernel).to_spec()
    np.testing.assert_array_equal(loaded.plan.gp.noise, np.geomspace(0.1, 3, 12))
    if given:
        np.testing.assert_array_equal(loaded.plan.gp.kernel(setting.X), as_kernel(kernel)(setting.X))
    written = path.read_bytes()
    loaded.save(path)
    assert path.read_bytes() == written


def test_of_hidden_inputs_nothing_comes_back_but_the_function(tmp_path):
    loaded = cloakgp.load(forging.honest("hidden", tmp_path))
    assert (loaded.plan.X, loaded.plan.measurement.matrix.size) == (None, 0)
    assert len(loaded.query([-3.0, 12.0])) == 2
    with pytest.raises(ValueError, match="does not show"):
        loaded.predict([1.0])


def test_a_custom_kernel_must_be_given_for_new_predictions(saved, setting):
    path = saved(kernel=MINIMUM)
    loaded = cloakgp.load(path)
    assert loaded.mean.shape == (4,)
    with pytest.raises(ValueError, match=r"kernel: .*custom kernel.*load\(path, kernel=\.\.\.\)"):
        loaded.plan.gp.kernel(setting.X)
    assert cloakgp.load(path, kernel=EQ(9.0)).plan.gp.kernel == EQ(9.0)
    plan = cloakgp.GP(MINIMUM, 0.4, (-1.0, 4.0)).plan_function(setting.X, **forging.PROMISE)
    release = plan.release(setting.y)
    release.save(path)
    with pytest.raises(ValueError, match=r"kernel: .*custom kernel"):
        cloakgp.load(path).query([1.0])
    np.testing.assert_array_equal(cloakgp.load(path, kernel=MINIMUM).query([1.0]), release.query([1.0]))


def test_a_given_kernel_is_used_only_for_a_custom_one(saved):
    """What the file says of its kernel cannot be overruled."""
    path = saved()
    assert cloakgp.load(path).plan.gp.kernel == EQ(2.0, variance=1.5)
    assert cloakgp.load(path, kernel=EQ(9.0)).plan.gp.kernel == EQ(2.0, variance=1.5)
    with pytest.raises(TypeError, match="kernel must be a cloakgp kernel or a function"):
        cloakgp.load(path, kernel=3.0)


# What is in a file


def test_every_array_of_the_schema_is_in_some_file(contents):
    found = {name for _, arrays in contents.values() for name in arrays}
    plain = {name for name in found if not name[-1].isdigit()}
    assert plain == set(PLAN_ARRAYS)
    assert {name.rpartition("_")[0] for name in found - plain} == set(STAGE_ARRAYS)


# And what cannot be


def one_of_many(path, key):
    """Whether a learned model, or one of many stages, is like the one before it."""
    return path in (("learned",), ("stages",)) and key > 1


def places(value, path=(), *, objects=False):
    """Where all values of a manifest are, or its objects alone."""
    if isinstance(value, dict) or not objects:
        yield path
    if isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            if not one_of_many(path, key):
                yield from places(inner, (*path, key), objects=objects)


def at(value, path):
    for key in path:
        value = value[key]
    return value


@every_kind
def test_keys_too_many_or_too_few_are_refused(contents, written, kind):
    manifest, _ = contents[kind]
    for place in places(manifest, objects=True):
        refused(written(kind, lambda m, a, place=place: at(m, place).update(notes="y = 3.14")))
        for key in at(manifest, place):
            path = written(kind, lambda m, a, place=place, key=key: at(m, place).pop(key))
            with pytest.raises(ReleaseFileError):
                reading.read(path)


@every_kind
def test_arrays_too_many_or_too_few_are_refused(contents, written, kind):
    """Those of every other kind of file among them: twelve numbers could ride along unread, y itself, say."""
    own = contents[kind][1]
    others = {name: array for _, arrays in contents.values() for name, array in arrays.items()}
    numbered = {f"{name}_{number}": others["z_0"] for name in STAGE_ARRAYS for number in ("9", "00", "100")}
    for name, array in {**others, **numbered, "y": forging.Y, "matrix": others["matrix_0"]}.items():
        free = name == "inducing" and "prior" in contents[kind][0]["model"]
        if name not in own and not free:
            path = written(kind, lambda m, a, name=name, array=array: a.update({name: array}))
            with pytest.raises(ReleaseFileError):
                reading.read(path)
    for name in own:
        digest = contents[kind][0]["inputs_sha256"]
        if name not in (("X", "people", "rows_each") if digest else ()):
            refused(written(kind, lambda m, a, name=name: a.pop(name)))


CHANGES = {
    "longer": lambda array: np.concatenate([array, array[:1]]),
    "shorter": lambda array: array[:-1],
    "none": lambda array: array[:0],
    "deeper": lambda array: array[None],
    "big-endian": lambda array: array.astype(array.dtype.newbyteorder(">")),
    "half as wide": lambda array: array.astype("<f4" if array.dtype.kind == "f" else "<i4"),
    "other numbers": lambda array: array.astype("<i8" if array.dtype.kind == "f" else "<f8"),
    "complex": lambda array: array.astype(complex),
    "texts": lambda array: array.astype(str),
    "NaN": lambda array: np.where(np.arange(array.size).reshape(array.shape) == 0, np.nan, array),
    "endless": lambda array: np.where(np.arange(array.size).reshape(array.shape) == 0, -np.inf, array),
}


@every_kind
@pytest.mark.parametrize("how", CHANGES)
def test_arrays_of_another_shape_or_kind_are_refused(contents, written, kind, how):
    for name in contents[kind][1]:
        if name == "inducing" and how in ("longer", "shorter"):
            continue  # there may be any number
        path = written(kind, lambda m, a, name=name: a.update({name: CHANGES[how](a[name])}))
        with pytest.raises(ReleaseFileError):
            reading.read(path)


JUNK = [None, True, -1, 0, 2**70, 1e308, -0.0, "x", [1.0], {"x": 1}, [[]]]
JUNK_KINDS = ["cells with windows", "function", "after another", "categories", "people's rows of classes"]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", JUNK_KINDS)
def test_junk_in_a_manifest_is_refused_or_harmless(contents, written, kind):
    """No other error than those that are documented, from load or from verify, and no work without end."""
    manifest, shown = contents[kind][0], kind not in forging.IN_PART
    unexpected = []
    for place in list(places(manifest))[1:]:
        for junk in JUNK:
            if repr(at(manifest, place)) == repr(junk):
                continue
            path = written(kind, lambda m, a, p=place, junk=junk: at(m, p[:-1]).__setitem__(p[-1], junk))
            try:
                cloakgp.load(path)
            except ReleaseFileError:
                continue
            except Exception as error:
                unexpected.append((place, junk, repr(error)[:80]))
            try:
                complete = verify(path).complete
            except (ReleaseFileError, VerificationError):
                continue
            # Settings, and what earlier releases promised: see the table in docs/release-file.md.
            words = place[0] in ("learned", "given", "model", "kappa", "people", "grid")
            numbers = place[-1] in ("iterations", "jitter", "bias", "gap")
            if complete == shown and not (words or numbers or (kind == "hidden" and place[-1] == "n_rows")):
                unexpected.append((place, junk, "passed"))
    assert not unexpected


def test_the_page_names_every_member_key_and_word(contents):
    """``docs/release-file.md``, for readers in other languages."""
    text = (Path(__file__).parents[2] / "docs" / "release-file.md").read_text(encoding="utf-8")
    for name in (*PLAN_ARRAYS, *(f"{name}_j" for name in STAGE_ARRAYS)):
        assert f"`{name}.npy`" in text
    own = {"kind", "name", "correlation", "active_dims", "variance", "period"}  # of kernels and columns
    for manifest, _ in contents.values():
        for place in places(manifest):
            key = place[-1] if place else ""
            if isinstance(key, str) and key and place[0] not in ("members", "custodians_words_unchecked"):
                assert key in own or f"`{key}`" in text, place
    for word in (*DESIGNS, *BOUNDS, *APPROXIMATIONS, *UNITS, *OUTCOMES, MEANS, FUNCTION, STAGED):
        assert f'`"{word}"`' in text
