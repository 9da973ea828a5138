"""Title, units, source and date: kept in every kind of file, part of no plan, and bounded."""

import numpy as np
import pytest

import cloakgp
from cloakgp.core.errors import ArgumentError
from cloakgp.files.container import ReleaseFileError
from cloakgp.files.labels import Labels
from cloakgp.kernels import EQ

X = np.arange(12.0)[:, None]
MODEL = cloakgp.GP(EQ(3.0), noise=0.5, bounds=(0.0, 4.0))
ASKED = {"epsilon": 1.0, "delta": 0.01}
WORDS = {"title": "Heights", "units": "£", "source": "census, 1967", "date": "§ 2"}
PLANS = {
    "predictions": MODEL.plan(X, X_star=X[:3], **ASKED),
    "function": MODEL.plan_function(X, **ASKED),
    "stages": cloakgp.AutoGP((0, 4), stages=2).plan(X, X_star=X[:3], **ASKED),
    "rows": cloakgp.AutoGP((0, 4), stages=2).plan_rows(cloakgp.Grid({"age": (0, 12)}, cells=3), 12, **ASKED),
}


@pytest.mark.parametrize("kind", PLANS)
def test_words_are_in_the_file_and_the_plan_is_the_same(kind, tmp_path):
    plan, path = PLANS[kind], tmp_path / "a.cloak"
    release = plan.release(
        {"age": X[:, 0]} if kind == "rows" else np.ones(12), *[np.ones(12)] * (kind == "rows")
    )
    assert release.labels == Labels()
    named = release.labelled(title="old").labelled(**WORDS)
    named.save(path)
    found = cloakgp.load(path)
    assert found.labels == Labels(**WORDS)
    assert found.plan.digest == release.plan.digest
    assert cloakgp.verify(path).complete
    assert found.labelled(title="new").labels == Labels(**WORDS | {"title": "new"})
    release.save(path)
    assert cloakgp.load(path).labels == Labels()


@pytest.mark.parametrize("word", ["x" * 201, "a\nb", 3])
def test_words_are_short_and_printable(word, tmp_path, tamper):
    release = PLANS["predictions"].release(np.ones(12))
    with pytest.raises(ArgumentError, match="title must be printable text of at most 200 characters"):
        release.labelled(title=word)
    release.save(tmp_path / "a.cloak")

    def lie(manifest, arrays):
        manifest["custodians_words_unchecked"]["title"] = word

    tamper(tmp_path / "a.cloak", lie)
    with pytest.raises(ReleaseFileError, match="short printable words"):
        cloakgp.load(tmp_path / "a.cloak")
