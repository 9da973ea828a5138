"""Signatures: who made a file, and that nothing in it was changed since."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from cloakgp import Release, SignatureError, verify
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


def test_another_digest_or_key_does_not_hold(private_key, stranger):
    signature = signing.sign(DIGEST, private_key)
    with pytest.raises(SignatureError, match="does not fit its contents"):
        signing.check("cd" * 32, signature, None)
    with pytest.raises(SignatureError, match="does not fit its contents"):
        signing.check(DIGEST, {**signature, "public_key": stranger.public_bytes_raw().hex()}, None)
    for key in forms(stranger):
        with pytest.raises(SignatureError, match="another key than signed_by"):
            signing.check(DIGEST, signature, key)


def test_every_bit_of_a_signature_counts(private_key):
    signature = signing.sign(DIGEST, private_key)
    raw = bytes.fromhex(signature["signature"])
    for bit in range(8 * len(raw)):
        wrong = bytearray(raw)
        wrong[bit // 8] ^= 1 << (bit % 8)
        with pytest.raises(SignatureError):
            signing.check(DIGEST, {**signature, "signature": wrong.hex()}, None)


@pytest.mark.parametrize(
    "change",
    [
        {"algorithm": "none"},
        {"algorithm": None},
        {"public_key": ""},
        {"public_key": "zz"},
        {"public_key": 3},
        {"signature": ""},
        {"signature": None},
        {"more": "payload"},
    ],
    ids=str,
)
def test_malformed_signatures(private_key, change):
    with pytest.raises(SignatureError, match="does not fit"):
        signing.check(DIGEST, {**signing.sign(DIGEST, private_key), **change}, None)


@pytest.mark.parametrize("signature", [{}, [], "", 3, ["algorithm", "public_key", "signature"]], ids=repr)
def test_what_is_no_signature(signature):
    with pytest.raises(SignatureError, match="does not fit"):
        signing.check(DIGEST, signature, None)


def test_the_signature_is_bound_to_its_purpose(private_key):
    """Signing the bare digest, as another program might, is not signing a release."""
    bare = {**signing.sign(DIGEST, private_key), "signature": private_key.sign(DIGEST.encode()).hex()}
    with pytest.raises(SignatureError):
        signing.check(DIGEST, bare, None)


@pytest.mark.parametrize("key", [None, "secret", b"0" * 32, 3], ids=repr)
def test_sign_with_must_be_a_private_key(key):
    with pytest.raises(
        TypeError, match=r"sign_with must be an Ed25519PrivateKey.*Ed25519PrivateKey\.generate"
    ):
        signing.sign(DIGEST, key)


def test_a_public_key_cannot_sign(public):
    with pytest.raises(TypeError, match="sign_with must be an Ed25519PrivateKey"):
        signing.sign(DIGEST, public)


@pytest.mark.parametrize("key", [3, object(), ["ab"], 1.5], ids=["int", "object", "list", "float"])
def test_signed_by_must_be_a_key(private_key, key):
    with pytest.raises(TypeError, match="signed_by"):
        signing.check(DIGEST, signing.sign(DIGEST, private_key), key)


def test_a_private_key_is_not_who_signed(private_key):
    with pytest.raises(TypeError, match="signed_by"):
        signing.check(DIGEST, signing.sign(DIGEST, private_key), private_key)


@pytest.mark.parametrize("key", ["not hex", "zz" * 32, "ab", b"", b"short"], ids=repr)
def test_text_and_bytes_that_are_no_key(private_key, key):
    with pytest.raises((TypeError, SignatureError)):
        signing.check(DIGEST, signing.sign(DIGEST, private_key), key)


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


def test_another_signer_is_refused(saved, private_key, stranger):
    path = saved(sign_with=private_key)
    for key in forms(stranger):
        with pytest.raises(SignatureError, match="another key"):
            verify(path, signed_by=key)


def test_a_stripped_signature_is_missed(saved, private_key, public):
    path = saved(sign_with=private_key)
    manifest, arrays, _ = container.unpack(path.read_bytes())
    bare = {key: value for key, value in manifest.items() if key not in ("members", "sha256")}
    path.write_bytes(container.pack(bare, arrays))
    assert verify(path).signed_by is None
    with pytest.raises(SignatureError, match="not signed"):
        verify(path, signed_by=public)


@pytest.mark.parametrize("name", ["z", "X", "weights"])
def test_a_signature_covers_every_array(saved, tamper, private_key, public, name):
    path = saved(sign_with=private_key)
    tamper(path, lambda manifest, arrays: arrays[name].flat.__setitem__(0, arrays[name].flat[0] + 1))
    for signed_by in (None, public):
        with pytest.raises(SignatureError, match="does not fit its contents"):
            verify(path, signed_by=signed_by)


def test_a_signature_covers_the_manifest(saved, tamper, private_key, public):
    path = saved(sign_with=private_key)
    tamper(path, lambda manifest, arrays: manifest["certificate"].update(iterations=12345))
    with pytest.raises(SignatureError, match="does not fit its contents"):
        verify(path, signed_by=public)


def test_a_forger_who_signs_again_is_not_the_custodian(saved, tamper, private_key, stranger):
    forger = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(32))
    path = saved(sign_with=private_key)
    tamper(path, lambda manifest, arrays: arrays["z"].__setitem__(0, arrays["z"][0] + 1))
    manifest, arrays, _ = container.unpack(path.read_bytes())
    bare = {key: value for key, value in manifest.items() if key not in ("members", "sha256")}
    path.write_bytes(container.pack(bare, arrays, signing.sign(manifest["sha256"], forger)))
    assert verify(path).signed_by == stranger.public_bytes_raw().hex()
    with pytest.raises(SignatureError, match="another key"):
        verify(path, signed_by=private_key.public_key())


def test_a_signature_belongs_to_its_file(saved, private_key):
    one, two = saved("one", sign_with=private_key), saved("two", sign_with=private_key)
    manifest, arrays, _ = container.unpack(one.read_bytes())
    other = container.unpack(two.read_bytes())[2]
    bare = {key: value for key, value in manifest.items() if key not in ("members", "sha256")}
    one.write_bytes(container.pack(bare, arrays, other))
    with pytest.raises(SignatureError, match="does not fit"):
        verify(one)


def test_a_signed_file_loads_and_the_key_is_not_in_it(saved, private_key):
    path = saved(sign_with=private_key)
    assert np.isfinite(Release.load(path).mean).all()
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
    assert Release.load(signed).mean.shape == (4,)
    assert verify(unsigned).signed_by is None
