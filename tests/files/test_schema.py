"""Saving and loading: the same release bit for bit, or an error."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as sk

from cloakgp import GP, Release, ReleaseFileError, verify
from cloakgp.designs import DESIGNS
from cloakgp.errors import ArgumentError
from cloakgp.files import container, reading
from cloakgp.kernels import EQ, Constant, Gibbs, Linear, Matern32
from cloakgp.measurements.certificate import FIELDS
from cloakgp.plans.functions import FunctionRelease

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


BASIS = np.linspace(0.0, 10.0, 5)[:, None]
FUNCTIONS = {
    "exact": {},
    "exact on a basis": {"basis": BASIS},
    "paper with prior noise": {"bound": "paper", "prior_noise": True},
    "input-free": {"bound": "input-free", "basis": BASIS},
}


@pytest.fixture
def release_function(setting):
    """A released function of the small model."""

    def make(kind="exact", **changes):
        model = {name: changes.pop(name, getattr(setting.gp, name)) for name in MODEL}
        plan = GP(**model).plan_function(setting.X, epsilon=1.0, delta=0.01, **FUNCTIONS[kind], **changes)
        return plan.release(setting.y)

    return make


MODEL = ("kernel", "noise", "bounds", "mean")


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("noise", [0.4, np.geomspace(0.1, 3, 12)], ids=["one noise", "noise per row"])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("given", [False, True], ids=["kernel from file", "kernel given"])
def test_round_trip_is_exact(make_plan, setting, tmp_path, design, noise, kernel, given):
    release = make_plan(design=design, noise=noise, kernel=kernel, weights=[1, 2, 3, 4]).release(setting.y)
    release.save(tmp_path / "file")
    loaded = Release.load(tmp_path / "file", **({"kernel": kernel} if given else {}))
    for name in ("mean", "z", "noise_std", "noise_cov", "X_star"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(release, name))
    np.testing.assert_allclose(loaded.gp_std, release.gp_std, rtol=5e-4)  # four digits are written
    assert loaded.certificate == release.certificate
    for name in ("X", "weights", "offset", "reconstruction"):
        np.testing.assert_array_equal(getattr(loaded.plan, name), getattr(release.plan, name))
    np.testing.assert_array_equal(loaded.plan.gp.noise, noise)
    assert (loaded.plan.gp.bounds, loaded.plan.gp.mean) == (setting.gp.bounds, setting.gp.mean)
    assert repr(loaded) == repr(release)
    if given:
        X = setting.X
        np.testing.assert_array_equal(loaded.plan.gp.kernel(X), release.plan.gp.kernel(X))


@pytest.mark.parametrize("noise", [0.4, np.geomspace(0.1, 3, 12)], ids=["one noise", "noise per row"])
@pytest.mark.parametrize("kind", FUNCTIONS)
def test_round_trip_of_a_function_is_exact(release_function, setting, tmp_path, kind, noise):
    release = release_function(kind, noise=noise)
    release.save(tmp_path / "file")
    loaded = FunctionRelease.load(tmp_path / "file")
    anywhere = np.linspace(-3.0, 12.0, 9)
    for one, two in zip(
        loaded.query(anywhere, return_std=True), release.query(anywhere, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(one, two)
    assert loaded.certificate == release.certificate
    for name in ("points", "reconstruction", "midpoint_measurements"):
        np.testing.assert_array_equal(getattr(loaded.plan, name), getattr(release.plan, name))
    assert (loaded.plan.rkhs_sensitivity, loaded.plan.prior_seed) == (
        release.plan.rkhs_sensitivity,
        release.plan.prior_seed,
    )
    assert repr(loaded) == repr(release)
    if kind == "input-free":
        assert loaded.plan.X is None
        assert loaded.plan.measurement.matrix.size == 0
        with pytest.raises(ValueError, match="does not show"):
            loaded.predict(anywhere)
    else:
        np.testing.assert_array_equal(loaded.predict(anywhere), release.predict(anywhere))
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "file").read_bytes()


def test_each_kind_of_file_is_read_by_its_own_class(saved, release_function, tmp_path):
    release_function().save(tmp_path / "function")
    with pytest.raises(ReleaseFileError, match=r"whole function; read it with FunctionRelease\.load"):
        Release.load(tmp_path / "function")
    with pytest.raises(ReleaseFileError, match=r"predictions; read it with Release\.load"):
        FunctionRelease.load(saved())


@pytest.mark.parametrize("given", [False, True], ids=["kernel from file", "kernel given"])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_saving_what_was_loaded_gives_the_same_bytes(make_plan, setting, tmp_path, kernel, given):
    make_plan(kernel=kernel).release(setting.y).save(tmp_path / "one")
    Release.load(tmp_path / "one", **({"kernel": kernel} if given else {})).save(tmp_path / "two")
    assert (tmp_path / "two").read_bytes() == (tmp_path / "one").read_bytes()


def test_saving_a_function_with_a_custom_kernel_again_gives_the_same_bytes(release_function, tmp_path):
    kernel = KERNELS["function"]
    release = release_function(kernel=kernel)
    release.save(tmp_path / "one")
    loaded = FunctionRelease.load(tmp_path / "one")
    loaded.save(tmp_path / "two")
    assert (tmp_path / "two").read_bytes() == (tmp_path / "one").read_bytes()
    with pytest.raises(ValueError, match=r"kernel: .*custom kernel"):
        loaded.query([1.0])
    given = FunctionRelease.load(tmp_path / "one", kernel=kernel)
    np.testing.assert_array_equal(given.query([1.0]), release.query([1.0]))


def test_a_given_kernel_is_used_only_for_a_custom_one(saved, release_function, tmp_path):
    """What the file says of its kernel cannot be overruled."""
    assert Release.load(saved(), kernel=EQ(9.0)).plan.gp.kernel == EQ(2.0, variance=1.5)
    release_function().save(tmp_path / "function")
    assert FunctionRelease.load(tmp_path / "function", kernel=EQ(9.0)).plan.gp.kernel == EQ(2.0, variance=1.5)
    custom = saved("custom", kernel=lambda X, Z: np.minimum(X, Z.T) + 1.0)
    assert Release.load(custom, kernel=EQ(9.0)).plan.gp.kernel == EQ(9.0)


def test_a_stored_kernel_comes_back(saved):
    assert Release.load(saved()).plan.gp.kernel == EQ(2.0, variance=1.5)


def test_a_custom_kernel_must_be_given_for_new_predictions(saved, setting):
    path = saved(kernel=lambda X, Z: np.minimum(X, Z.T) + 1.0)
    loaded = Release.load(path)
    assert loaded.mean.shape == (4,)
    with pytest.raises(ValueError, match=r"kernel: .*custom kernel.*load\(path, kernel=\.\.\.\)"):
        loaded.plan.gp.kernel(setting.X)


def test_a_kernel_that_is_none_is_the_callers_mistake(saved):
    with pytest.raises(TypeError, match="kernel must be a cloakgp kernel or a function"):
        Release.load(saved(), kernel=3.0)


def test_a_loaded_release_is_read_only(saved):
    loaded = Release.load(saved(noise=np.full(12, 0.4)))
    plan = loaded.plan
    arrays = [plan.X, plan.X_star, plan.weights, plan.reconstruction, plan.offset, plan.gp_std, plan.gp.noise]
    for array in [*arrays, plan.measurement.matrix, loaded.z]:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_nothing_is_released_from_a_plan_that_came_with_a_file(saved, setting):
    """Its matrix is somebody else's."""
    with pytest.raises(ArgumentError, match="made from your own table"):
        Release.load(saved()).plan.release(setting.y)


# What is in the file


def manifest_of(path):
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("manifest.json")), archive.namelist()


def test_the_file_says_what_it_is(saved):
    manifest, names = manifest_of(saved())
    assert (manifest["format"], manifest["schema"], manifest["unit"]) == ("cloakgp-release", 4, "one row")
    assert (manifest["release"], manifest["measurement"]) == ("predictions", {"kind": "dense"})
    assert manifest["certificate"]["bound"] == "exact"
    assert manifest["certificate"]["unbiased"] is True
    assert "function" not in manifest
    assert set(manifest["certificate"]) == set(FIELDS)
    assert manifest["certificate"]["insecure"] is False
    assert manifest["model"] == {
        "kernel": EQ(2.0, variance=1.5).to_spec(),
        "noise": 0.4,
        "bounds": [-1.0, 4.0],
        "mean": 0.7,
        "approximation": None,
    }
    arrays = ["X", "X_star", "gp_std", "matrix", "offset", "reconstruction", "weights", "z"]
    assert names == ["manifest.json"] + [f"{name}.npy" for name in arrays]
    assert set(manifest["members"]) == set(names[1:])
    assert all(len(digest) == 64 for digest in [*manifest["members"].values(), manifest["sha256"]])


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_the_file_says_that_it_is_a_function(release_function, tmp_path, kind):
    release = release_function(kind)
    release.save(tmp_path / "file")
    manifest, names = manifest_of(tmp_path / "file")
    hidden = kind == "input-free"
    assert manifest["release"] == manifest["certificate"]["design"] == "function"
    assert manifest["measurement"] == {"kind": "withheld" if hidden else "dense"}
    assert manifest["function"] == {
        "reach": release.plan.rkhs_sensitivity,
        "prior_seed": release.plan.prior_seed,
    }
    assert set(manifest["certificate"]) == set(FIELDS)
    assert manifest["certificate"]["bound"] == kind.split()[0]
    assert manifest["certificate"]["unbiased"] is (FUNCTIONS[kind].get("bound") != "input-free")
    shown = [] if hidden else ["X", "matrix"]
    arrays = sorted([*shown, "centre", "points", "reconstruction", "z"])
    assert names == ["manifest.json"] + [f"{name}.npy" for name in arrays]


@pytest.mark.parametrize("make", ["saved", "function"])
def test_arrays_are_plain_and_little_endian(saved, release_function, tmp_path, make):
    path = tmp_path / "release.cloak"
    if make == "saved":
        saved(noise=np.full(12, 0.4))
    else:
        release_function(noise=np.full(12, 0.4)).save(path)
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist()[1:]:
            array = np.load(io.BytesIO(archive.read(name)), allow_pickle=False)
            assert array.dtype.str == ("<i8" if name in ("matrix.npy", "z.npy", "centre.npy") else "<f8")
    assert manifest_of(path)[0]["model"]["noise"] == "per row"


# Damage


def test_a_flipped_bit_is_noticed(saved):
    """test_container.py flips every bit of a smaller file."""
    path = saved()
    contents = path.read_bytes()
    for position in range(0, len(contents), 7):
        damaged = bytearray(contents)
        damaged[position] ^= 1 << (position % 8)
        path.write_bytes(damaged)
        with pytest.raises(ReleaseFileError):
            Release.load(path)


@pytest.mark.parametrize("reader", [Release.load, verify])
def test_truncated_and_longer_files_are_noticed(saved, reader):
    path = saved()
    contents = path.read_bytes()
    for length in [*range(0, len(contents), 61), len(contents) - 1]:
        path.write_bytes(contents[:length])
        with pytest.raises(ReleaseFileError):
            reader(path)
    for longer in (contents + b"\0", b"\0" + contents):
        path.write_bytes(longer)
        with pytest.raises(ReleaseFileError):
            reader(path)


@pytest.mark.parametrize("reader", [Release.load, verify])
def test_files_that_are_not_there(tmp_path, reader):
    with pytest.raises(FileNotFoundError, match="nothing"):
        reader(tmp_path / "nothing")
    with pytest.raises(OSError, match=tmp_path.name):
        reader(tmp_path)
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(ReleaseFileError, match="not a release file"):
        reader(tmp_path / "empty")


def test_another_zip_is_not_a_release(tmp_path):
    (tmp_path / "zip").write_bytes(container.pack({"format": "something else"}, {}))
    with pytest.raises(ReleaseFileError, match="not a release file: its format"):
        Release.load(tmp_path / "zip")


# Contents that fit no schema


@pytest.mark.parametrize("schema", [5, 3, 2, 1, 0, "4", None, True, 4.0], ids=repr)
def test_other_schemas_are_refused(saved, tamper, schema):
    path = saved()
    tamper(path, lambda manifest, arrays: manifest.update(schema=schema))
    with pytest.raises(ReleaseFileError, match=r"schema .*; this version of cloakgp reads schema 4 alone"):
        Release.load(path)


JUNK = [None, True, -1, 1e308, 10**400, "x", [], [1, 2], ["a", "b"], {}]


def leaves(value, path=()):
    """The path of every object and every value in a manifest."""
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, (*path, index))


def set_at(value, path, junk):
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = junk


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "part",
    [
        "format",
        "schema",
        "unit",
        "release",
        "certificate",
        "measurement",
        "model",
    ],
)
def test_junk_in_a_manifest_is_refused_or_harmless(saved, tamper, part):
    """Nothing but ReleaseFileError from load, and from verify its own errors."""
    path = saved(kernel=EQ([2.0]) * Matern32(3.0, active_dims=[0]))
    contents = path.read_bytes()
    places = [place for place in leaves(container.unpack(contents)[0]) if place and place[0] == part]
    unexpected = []
    for place in places:
        for junk in JUNK:
            path.write_bytes(contents)
            tamper(path, lambda manifest, arrays, place=place, junk=junk: set_at(manifest, place, junk))
            for reader in (Release.load, verify):
                try:
                    reader(path)
                except ReleaseFileError:
                    pass
                except Exception as error:
                    if type(error).__name__ != "VerificationError":
                        unexpected.append((reader.__name__, place, repr(junk)[:20], repr(error)[:80]))
    assert not unexpected


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "part",
    [
        "release",
        "function",
        "certificate",
        "measurement",
        "model",
    ],
)
@pytest.mark.parametrize("kind", ["exact", "input-free"])
def test_junk_in_a_functions_manifest_is_refused_or_harmless(release_function, tmp_path, tamper, kind, part):
    path = tmp_path / "file"
    release_function(kind).save(path)
    contents = path.read_bytes()
    places = [place for place in leaves(container.unpack(contents)[0]) if place and place[0] == part]
    unexpected = []
    for place in places:
        for junk in JUNK:
            path.write_bytes(contents)
            tamper(path, lambda manifest, arrays, place=place, junk=junk: set_at(manifest, place, junk))
            for reader in (FunctionRelease.load, verify):
                try:
                    reader(path)
                except ReleaseFileError:
                    pass
                except Exception as error:
                    if type(error).__name__ != "VerificationError":
                        unexpected.append((reader.__name__, place, repr(junk)[:20], repr(error)[:80]))
    assert not unexpected


@pytest.mark.parametrize("kind", ["exact", "input-free"])
def test_parts_of_a_function_too_many_or_too_few_are_refused(release_function, tmp_path, tamper, kind):
    path = tmp_path / "file"
    release_function(kind).save(path)
    contents = path.read_bytes()
    manifest, arrays, _ = reading.read_bytes(contents)
    changes = [lambda m, a, name=name: a.pop(name) for name in arrays]
    changes += [lambda m, a, key=key: m["function"].pop(key) for key in manifest["function"]]
    changes += [
        lambda m, a: m["function"].update(hidden="payload"),
        lambda m, a: m.pop("function"),
        lambda m, a: a.update(weights=np.ones(len(a["points"]))),
        lambda m, a: a.update(y=np.arange(12.0)),
        lambda m, a: a.update(noise=np.ones(12)),
        lambda m, a: m["measurement"].update(kind="dense" if kind == "input-free" else "withheld"),
        lambda m, a: a.update(centre=a["centre"][:-1]),
        lambda m, a: a.update(centre=a["centre"].astype("<f8")),
    ]
    if kind == "exact":  # where X is withheld, nothing tells how many columns it has
        changes.append(lambda m, a: a.update(points=np.hstack([a["points"], a["points"]])))
    if kind == "input-free":
        changes += [
            lambda m, a: a.update(X=np.ones((12, 1))),
            lambda m, a: a.update(matrix=np.ones((len(a["z"]), 12), dtype="<i8")),
        ]
    for change in changes:
        path.write_bytes(contents)
        tamper(path, change)
        for reader in (FunctionRelease.load, verify):
            with pytest.raises(ReleaseFileError):
                reader(path)


def test_predictions_cannot_carry_a_functions_parts(saved, tamper):
    path = saved()
    contents = path.read_bytes()
    for change in (
        lambda m, a: m.update(function={"reach": 1.0, "prior_seed": None}),
        lambda m, a: a.update(points=np.ones((4, 1))),
        lambda m, a: a.update(centre=np.ones(len(a["z"]), dtype="<i8")),
    ):
        path.write_bytes(contents)
        tamper(path, change)
        with pytest.raises(ReleaseFileError):
            Release.load(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [("epsilon", 1), ("n_rows", 12.0), ("insecure", 0), ("sigma", 1e20), ("unit", 1), ("jitter", False)],
)
def test_the_certificates_values_must_be_of_their_type(saved, tamper, name, value):
    path = saved()
    tamper(path, lambda manifest, arrays: manifest["certificate"].update({name: value}))
    with pytest.raises(ReleaseFileError, match="certificate"):
        Release.load(path)


def test_keys_too_many_or_too_few_are_refused(saved, tamper):
    path = saved()
    contents = path.read_bytes()
    for place in ((), ("certificate",), ("model",), ("measurement",), ("model", "kernel")):

        def inner(manifest, place=place):
            for key in place:
                manifest = manifest[key]
            return manifest

        for key in [*inner(container.unpack(contents)[0]), None]:
            if key in ("members", "sha256"):
                continue
            path.write_bytes(contents)
            if key is None:
                tamper(path, lambda manifest, arrays, inner=inner: inner(manifest).update(hidden="payload"))
            else:
                tamper(path, lambda manifest, arrays, inner=inner, key=key: inner(manifest).pop(key))
            with pytest.raises(ReleaseFileError):
                Release.load(path)


def test_arrays_too_many_or_too_few_are_refused(saved, tamper):
    path = saved()
    contents = path.read_bytes()
    for name in reading.read_bytes(contents)[1]:
        path.write_bytes(contents)
        tamper(path, lambda manifest, arrays, name=name: arrays.pop(name))
        with pytest.raises(ReleaseFileError):
            Release.load(path)
    path.write_bytes(contents)
    tamper(path, lambda manifest, arrays: arrays.update(y=np.arange(12.0)))
    with pytest.raises(ReleaseFileError, match="not in the schema"):
        Release.load(path)


def test_a_noise_array_that_the_model_does_not_use_is_refused(saved, tamper):
    """Twelve numbers could ride along unread: y itself, say."""
    path = saved()
    tamper(path, lambda manifest, arrays: arrays.update(noise=np.arange(1.0, 13.0)))
    with pytest.raises(ReleaseFileError, match="noise"):
        Release.load(path)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_arrays_must_be_finite(saved, tamper, value):
    path = saved(noise=np.full(12, 0.4))
    contents = path.read_bytes()
    for name in ("X", "X_star", "weights", "noise", "reconstruction", "offset", "gp_std"):
        path.write_bytes(contents)
        tamper(path, lambda manifest, arrays, name=name: arrays[name].flat.__setitem__(0, value))
        with pytest.raises(ReleaseFileError, match=f"{name} must be finite"):
            Release.load(path)


def test_shapes_and_dtypes_must_fit(saved, tamper):
    path = saved(noise=np.full(12, 0.4))
    contents = path.read_bytes()
    changes = [
        lambda a: a[:-1],
        lambda a: a[..., None],
        lambda a: a.astype(">f8"),
        lambda a: a.astype("<f4"),
        lambda a: a.astype("<i4"),
        lambda a: a.astype(complex),
        lambda a: a.astype(str),
        lambda a: a[:0],
    ]
    for name in reading.read_bytes(contents)[1]:
        for change in changes:
            path.write_bytes(contents)
            tamper(path, lambda manifest, arrays, n=name, c=change: arrays.update({n: c(arrays[n])}))
            with pytest.raises(ReleaseFileError, match="release file: "):
                Release.load(path)


@pytest.mark.parametrize("reader", [Release.load, verify])
def test_files_without_rows_measurements_or_test_points_are_refused(saved, tamper, reader):
    path = saved()
    contents = path.read_bytes()
    emptied = {
        "rows": {"X": (slice(0),), "matrix": (slice(None), slice(0))},
        "measurements": {"matrix": (slice(0),), "z": (slice(0),), "reconstruction": (slice(None), slice(0))},
        "test points": {
            name: (slice(0),) for name in ("X_star", "weights", "reconstruction", "offset", "gp_std")
        },
        "columns": {"X": (slice(None), slice(0)), "X_star": (slice(None), slice(0))},
    }
    for cuts in emptied.values():
        path.write_bytes(contents)
        tamper(
            path,
            lambda manifest, arrays, cuts=cuts: arrays.update({n: arrays[n][cut] for n, cut in cuts.items()}),
        )
        with pytest.raises(ReleaseFileError):
            reader(path)
