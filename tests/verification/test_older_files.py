"""Files that were written before still load, predict and verify: one of each kind, of either schema."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from forging import opened, rewrite

from cloakgp import Release, ReleaseFileError, VerificationError, verify
from cloakgp.files import reading
from cloakgp.files.schema import CUSTODIANS_WORDS
from cloakgp.plans import encoding
from cloakgp.plans.functions import FunctionRelease

FIXTURES = Path(__file__).parents[1] / "fixtures"
FOLDER = FIXTURES / "schema_1"
KINDS = sorted(path.stem for path in FOLDER.glob("*.cloak"))
every_schema = pytest.mark.parametrize("schema", [1, 2])
AT = np.array([[0.5], [3.0], [20.0]])
IN_PART = {"custom", "function_hidden", "recipe_digest"}


def loaded(path):
    return (FunctionRelease if "function" in path.stem else Release).load(path)


@pytest.fixture
def old(tmp_path):
    """A copy of an old file."""

    def copy(kind):
        path = tmp_path / f"{kind}.cloak"
        path.write_bytes((FOLDER / f"{kind}.cloak").read_bytes())
        return path

    return copy


@every_schema
def test_there_is_one_of_each_kind(schema):
    assert len(KINDS) == 12
    for kind in KINDS:
        assert opened(FIXTURES / f"schema_{schema}" / f"{kind}.cloak")[0]["schema"] == schema


@every_schema
@pytest.mark.parametrize("kind", KINDS)
def test_old_files_predict_what_they_did(kind, schema):
    folder = FIXTURES / f"schema_{schema}"
    said = json.loads((folder / "said.json").read_text())
    release = loaded(folder / f"{kind}.cloak")
    if kind == "custom":
        found = release.mean
    else:
        found = release.query(AT) if kind == "function_hidden" else release.predict(AT)
    np.testing.assert_allclose(
        found, said["recipe" if kind == "recipe_digest" else kind], rtol=1e-9, atol=1e-9
    )


@every_schema
@pytest.mark.parametrize("kind", KINDS)
def test_old_files_verify(kind, schema):
    assert verify(FIXTURES / f"schema_{schema}" / f"{kind}.cloak").complete == (kind not in IN_PART)


@pytest.mark.parametrize("kind", KINDS)
def test_files_of_todays_schema_are_written_again_to_the_byte(tmp_path, kind):
    path = FIXTURES / "schema_2" / f"{kind}.cloak"
    with pytest.MonkeyPatch.context() as patch:
        if kind == "recipe_digest":
            patch.setattr(encoding, "LARGEST_INPUTS", 0)
        loaded(path).save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_saved_again_they_are_of_todays_schema(old, tmp_path, kind):
    loaded(old(kind)).save(tmp_path / "again")
    assert opened(tmp_path / "again")[0]["schema"] == 2
    assert verify(tmp_path / "again").complete == (kind not in IN_PART)


def test_the_receipt_is_kept():
    manifest, _, _ = reading.read(FOLDER / "receipt.cloak")
    assert manifest[CUSTODIANS_WORDS] == {"dataset": "heights"}
    receipt = Release.load(FOLDER / "receipt.cloak").receipt
    assert (receipt.dataset, receipt.entry, receipt.head) == ("heights", *manifest["ledger"].values())


def test_names_and_low_bits_are_cut_off(old):
    path = old("custom")

    def hide(manifest, arrays):
        manifest["model"]["kernel"]["name"] = "y = 3.14"
        manifest["certificate"]["bias"] *= 1 + 1e-12
        arrays["weights"] *= 7.25
        arrays["gp_std"] = np.nextafter(arrays["gp_std"], 9)

    before = reading.read(path)
    rewrite(path, hide)
    manifest, arrays, _ = reading.read(path)
    assert "3.14" not in json.dumps(manifest)
    assert manifest["certificate"] == before[0]["certificate"]
    for name in ("weights", "gp_std"):
        np.testing.assert_array_equal(arrays[name], before[1][name])


def test_lies_in_old_files_are_seen_through(old):
    path = old("mse")
    rewrite(path, lambda manifest, arrays: manifest["certificate"].update(epsilon=0.5))
    with pytest.raises(VerificationError):
        verify(path)
    rewrite(path, lambda manifest, arrays: manifest["certificate"].update(status="y = 3.14", epsilon=1.0))
    with pytest.raises(VerificationError, match="status"):
        verify(path)


@pytest.mark.parametrize("part", ["certificate", "model", "ledger"])
@pytest.mark.parametrize("junk", [None, 3, "x", [], {}])
def test_junk_in_old_files_is_refused_or_harmless(old, part, junk):
    path = old("receipt")
    rewrite(path, lambda manifest, arrays: manifest.update({part: junk}))
    try:
        Release.load(path)
    except ReleaseFileError:
        return
    assert (part, junk) == ("ledger", None)
