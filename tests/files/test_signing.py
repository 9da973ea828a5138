"""Signatures: who made a file, and that nothing in it was changed since."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from cloakgp import SignatureError, load, verify
from cloakgp.core.errors import ArgumentTypeError
from cloakgp.files import container, signing

ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
DIGEST = "ab" * 32


@pytest.fixture
def public(private_key):
    return private_key.public_key()


@pytest.fixture
def stranger():
    return ed25519.Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key()


def forms(key):
    return [key, key.public_bytes_raw(), key.public_bytes_raw().hex(), key.public_bytes_raw().hex().upper()]


# Digests


def test_a_signature_names_its_key_and_holds(private_key, public):
    signature = signing.sign(DIGEST, private_key)
    assert signature["algorithm"] == "Ed25519"
    assert signature["public_key"] == public.public_bytes_raw().hex()
    for key in [None, *forms(public)]:
        assert signing.check(DIGEST, signature, key) == public.public_bytes_raw().hex()
    json.dumps(signature)


WRONG = {
    **{f"{key!r}": {key: value} for key, value in [("algorithm", "none"), ("more", "payload")]},
    **{f"public key {value!r}": {"public_key": value} for value in ("", "zz", 3, "ab" * 32)},
    **{f"signature {value!r}": {"signature": value} for value in ("", None)},
}


@pytest.mark.parametrize("change", WRONG)
def test_malformed_signatures(private_key, change):
    with pytest.raises(SignatureError, match="does not fit its contents"):
        signing.check(DIGEST, {**signing.sign(DIGEST, private_key), **WRONG[change]}, None)


def test_nothing_hides_among_the_digits_of_a_signature(private_key):
    signature = signing.sign(DIGEST, private_key)
    for name in ("public_key", "signature"):
        for other in (signature[name].upper(), f"{signature[name][:8]} \n\t{signature[name][8:]}"):
            with pytest.raises(SignatureError):
                signing.check(DIGEST, {**signature, name: other}, None)


@pytest.mark.parametrize("signature", [{}, [], "", 3, ["algorithm", "public_key", "signature"]], ids=repr)
def test_what_is_no_signature(signature):
    with pytest.raises(SignatureError, match="does not fit"):
        signing.check(DIGEST, signature, None)


def test_another_digest_or_key_does_not_hold(private_key, stranger):
    signature = signing.sign(DIGEST, private_key)
    # Signing the bare digest, as another program might, is not signing a release.
    bare = {**signature, "signature": private_key.sign(DIGEST.encode()).hex()}
    other = {**signature, "public_key": stranger.public_bytes_raw().hex()}
    for digest, wrong in (("cd" * 32, signature), (DIGEST, bare), (DIGEST, other)):
        with pytest.raises(SignatureError, match="does not fit its contents"):
            signing.check(digest, wrong, None)
    for key in forms(stranger):
        with pytest.raises(SignatureError, match="another key than signed_by"):
            signing.check(DIGEST, signature, key)


def test_keys_of_another_kind_are_refused(private_key, public):
    for key in (None, "secret", b"0" * 32, 3, public):
        with pytest.raises(ArgumentTypeError) as refused:
            signing.sign(DIGEST, key)
        assert (refused.value.name, "generate()" in refused.value.remedy) == ("sign_with", True)
    signature = signing.sign(DIGEST, private_key)
    for key in (3, object(), ["ab"], 1.5, private_key, "not hex", "zz" * 32, "ab", b"", b"short"):
        with pytest.raises(ArgumentTypeError) as refused:
            signing.check(DIGEST, signature, key)
        assert refused.value.name == "signed_by"


# Files


def test_a_signed_file_is_verified(saved, private_key, public):
    path = saved(sign_with=private_key)
    hexed = public.public_bytes_raw().hex()
    for key in forms(public):
        assert verify(path, signed_by=key).signed_by == hexed
    result = verify(path)
    assert result.signed_by == hexed
    assert f"signed by key {hexed}" in str(result)


def test_an_unsigned_file_says_so_and_is_refused_where_a_signer_is_asked_for(saved, public):
    path = saved()
    assert verify(path).signed_by is None
    assert "not signed" in str(verify(path))
    with pytest.raises(SignatureError, match="not signed, but signed_by was given"):
        verify(path, signed_by=public)


def rewritten(path, signature=None, change=lambda arrays: None):
    """The file with right digests, and this signature."""
    manifest, arrays, _ = container.unpack(path.read_bytes())
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(arrays)
    words = container.bare(manifest)
    if callable(signature):
        signature = signature(container.seal(words, arrays)["sha256"])
    path.write_bytes(container.pack(words, arrays, signature))


def test_a_signature_that_is_another_is_refused(saved, private_key, public, stranger):
    """By another signer; stripped; of a forger who signs again; of another file."""
    for key in forms(stranger):
        with pytest.raises(SignatureError, match="another key"):
            verify(saved(sign_with=private_key), signed_by=key)
    path = saved("stripped", sign_with=private_key)
    rewritten(path)
    assert verify(path).signed_by is None
    with pytest.raises(SignatureError, match="not signed"):
        verify(path, signed_by=public)
    forger = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(32))
    rewritten(
        path, lambda digest: signing.sign(digest, forger), lambda arrays: arrays["z_0"].__setitem__(0, 1)
    )
    assert verify(path).signed_by == stranger.public_bytes_raw().hex()
    with pytest.raises(SignatureError, match="another key"):
        verify(path, signed_by=public)
    one, two = saved("one", sign_with=private_key), saved("two", sign_with=private_key)
    rewritten(one, container.unpack(two.read_bytes())[2])
    with pytest.raises(SignatureError, match="does not fit"):
        verify(one)


@pytest.mark.parametrize("name", ["z_0", "X", "weights", "certificate"])
def test_a_signature_covers_every_array_and_the_manifest(saved, tamper, private_key, public, name):
    def change(manifest, arrays):
        if name in manifest:
            manifest[name].update(epsilon=1.5)
        else:
            arrays[name].flat[0] += 1

    path = saved(sign_with=private_key)
    tamper(path, change)
    for signed_by in (None, public):
        with pytest.raises(SignatureError, match="does not fit its contents"):
            verify(path, signed_by=signed_by)


def test_a_signed_file_loads_and_the_key_is_not_in_it(saved, private_key):
    path = saved(sign_with=private_key)
    assert np.isfinite(load(path).mean).all()
    assert private_key.private_bytes_raw() not in path.read_bytes()
    assert private_key.private_bytes_raw().hex().encode() not in path.read_bytes()


# Without the extra


@pytest.fixture
def without_cryptography(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "cryptography"]:
        monkeypatch.setitem(sys.modules, name, None)


def test_without_cryptography_the_extra_is_named(saved, private_key, request, setting, make_plan, tmp_path):
    signed, unsigned = saved("signed", sign_with=private_key), saved("unsigned")
    release = make_plan().release(setting.y)
    request.getfixturevalue("without_cryptography")
    for attempt in (
        lambda: release.save(tmp_path / "new", sign_with=private_key),
        lambda: verify(signed),
        lambda: verify(signed, signed_by="ab" * 32),
    ):
        with pytest.raises(ImportError, match=r"install the extra cloakgp\[sign\]"):
            attempt()
    assert not (tmp_path / "new").exists()
    assert load(signed).mean.shape == (4,)
    assert verify(unsigned).signed_by is None
