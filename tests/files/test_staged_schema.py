"""Files of releases in stages: the same bytes again, and nothing in them that is not in the schema."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from cloakgp import GP, AutoGP, ReleaseFileError, VerificationError, verify
from cloakgp.files import container, reading
from cloakgp.kernels import EQ
from cloakgp.plans import opening
from cloakgp.plans.staged import StagedRelease

pytestmark = pytest.mark.usefixtures("few_models")

X = np.linspace(0.0, 10.0, 12)[:, None]
Y = 2.0 + np.sin(X[:, 0])
PROMISE = {"epsilon": 1.0, "delta": 0.01}
MODEL = AutoGP((-1.0, 4.0), stages=2)


@pytest.fixture(scope="module")
def plans():
    """A learned model's, and a known model's that takes an earlier release into account."""
    gp = GP(EQ(2.0), 0.3, (-1.0, 4.0))
    earlier = gp.plan(X, X_star=X[::4], **PROMISE).release(Y)
    return {
        "learned": MODEL.plan(X, X_star=X[::4], **PROMISE),
        "known": gp.plan(X, X_star=X[::4], given=[earlier], windows=2.0, **PROMISE),
    }


@pytest.fixture(scope="module")
def contents(plans, tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "file"
    found = {}
    for kind, plan in plans.items():
        plan.release(Y).save(path)
        manifest, arrays, _ = container.read(path)
        found[kind] = container.bare(manifest), arrays
    return found


KINDS = ["learned", "known"]
every_kind = pytest.mark.parametrize("kind", KINDS)


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
    for reader in (reading.read, opening.load_release, verify):
        with pytest.raises(ReleaseFileError):
            reader(path)


@every_kind
def test_written_again_to_the_byte(plans, tmp_path, kind):
    release = plans[kind].release(Y)
    release.save(tmp_path / "one")
    loaded = StagedRelease.load(tmp_path / "one")
    loaded.save(tmp_path / "two")
    assert (tmp_path / "two").read_bytes() == (tmp_path / "one").read_bytes()
    np.testing.assert_array_equal(loaded.mean, release.mean)
    assert loaded.plan.digest == release.plan.digest


@every_kind
def test_a_plan_is_written_again_to_the_byte(plans, tmp_path, kind):
    contents = plans[kind].to_bytes()
    assert opening.charged_plan(contents).to_bytes() == contents
    (tmp_path / "one").write_bytes(contents)
    with pytest.raises(ReleaseFileError, match="holds a plan"):
        verify(tmp_path / "one")


def objects(value, path=()):
    """Where the objects of a manifest are."""
    if isinstance(value, dict):
        yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(inner, (dict, list)) and not one_of_many(path, key):
            yield from objects(inner, (*path, key))


def one_of_many(path, key):
    """Whether a learned model is like the one before it."""
    return path == ("learned",) and key > 1


def at(value, path):
    for key in path:
        value = value[key]
    return value


@every_kind
def test_keys_too_many_or_too_few_are_refused(contents, written, kind):
    manifest, _ = contents[kind]
    places = list(objects(manifest))
    assert ("stages", 1, "spread") in places or kind == "known"
    for place in places:
        refused(written(kind, lambda m, a, place=place: at(m, place).update(notes="y = 3.14")))
        for key in at(manifest, place):
            refused(written(kind, lambda m, a, place=place, key=key: at(m, place).pop(key)))


@every_kind
def test_arrays_too_many_or_too_few_are_refused(contents, written, kind):
    last = len(contents[kind][0]["stages"])
    for name in ("y", "notes", "reconstruction", f"z_{last}", f"matrix_{last}", "z_00", "lower_0", "matrix"):
        if name not in contents[kind][1]:
            refused(written(kind, lambda m, a, name=name: a.update({name: np.zeros(3)})))
    for name in contents[kind][1]:
        refused(written(kind, lambda m, a, name=name: a.pop(name)))


@every_kind
def test_arrays_of_another_shape_or_kind_are_refused(contents, written, kind):
    changes = {
        "longer": lambda array: np.concatenate([array, array[:1]]),
        "deeper": lambda array: array[None],
        "other numbers": lambda array: array.astype("<f4"),
        "big-endian": lambda array: array.astype(array.dtype.newbyteorder(">")),
    }
    for name in contents[kind][1]:
        for change in changes.values():
            refused(written(kind, lambda m, a, name=name, change=change: a.update({name: change(a[name])})))


@every_kind
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_arrays_must_be_finite(contents, written, kind, value):
    for name, array in contents[kind][1].items():
        if array.dtype.kind == "f":
            refused(written(kind, lambda m, a, name=name: a[name].reshape(-1).__setitem__(0, value)))


JUNK = [None, True, -1, 0, 2**70, 1e308, "x", [1.0], {"x": 1}, [[]]]


def leaves(value, path=()):
    yield path
    if isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            if not one_of_many(path, key):
                yield from leaves(inner, (*path, key))


@every_kind
@pytest.mark.parametrize("junk", JUNK, ids=repr)
def test_junk_in_a_manifest_is_refused_or_harmless(contents, written, kind, junk):
    """No other error, and no work without end."""
    manifest = contents[kind][0]
    for place in list(leaves(manifest))[1:]:
        if repr(at(manifest, place)) == repr(junk):
            continue
        path = written(kind, lambda m, a, place=place: at(m, place[:-1]).__setitem__(place[-1], junk))
        try:
            opening.load_release(path)
            complete = verify(path).complete
        except (ReleaseFileError, VerificationError):
            continue
        # A weight that is near 0, a bound that no window reaches, what earlier releases promised: see the
        # table in docs/release-file.md.
        free = place[0] in ("learned", "given") or place[:2] == ("model", "bounds")
        assert free or not complete, place
