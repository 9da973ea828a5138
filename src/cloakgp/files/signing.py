"""Ed25519 signatures: who made a release file. Extra ``sign`` (the `cryptography` package)."""

from __future__ import annotations

import re
from typing import Any

from cloakgp.core.errors import Argument, ArgumentTypeError, Message, Phrase, missing_extra

_SIGNED_BY = Argument("signed_by")
_CONTEXT = b"cloakgp release file, manifest sha256: "


class SignatureError(ValueError):
    """A signature is missing, malformed, or by somebody else."""


def sign(digest: str, key: Any) -> dict[str, str]:
    """Sign a manifest's digest with an Ed25519 private key of the `cryptography` package."""
    private_key = _ed25519(Argument("sign_with")).Ed25519PrivateKey
    if not isinstance(key, private_key):
        expected = "must be an Ed25519PrivateKey of the cryptography package"
        remedy = "Make one with Ed25519PrivateKey.generate() and keep it safe."
        raise ArgumentTypeError("sign_with", expected, type(key).__name__, remedy)
    public, signature = key.public_key().public_bytes_raw(), key.sign(_CONTEXT + digest.encode())
    return {"algorithm": "Ed25519", "public_key": public.hex(), "signature": signature.hex()}


def check(digest: str, signature: dict[str, str] | None, signed_by: Any) -> str:
    """The signer's public key in hex, once the signature holds and is by `signed_by` if given.

    `signed_by` is an Ed25519PublicKey, its 32 bytes, or their hex.
    """
    wanted = None if signed_by is None else _raw(signed_by)
    if signature is None:
        raise SignatureError(
            Message("the file is not signed, but ", _SIGNED_BY, " was given. Ask for a signed copy.")
        )
    ed25519 = _ed25519("a signature" if signed_by is None else _SIGNED_BY)
    digits = {"public_key": 64, "signature": 128}
    try:
        if signature.keys() != {"algorithm", *digits} or signature["algorithm"] != "Ed25519":
            raise ValueError
        if not all(re.fullmatch(f"[0-9a-f]{{{n}}}", signature[name]) for name, n in digits.items()):
            raise ValueError  # fromhex would skip spaces
        public = ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature["public_key"]))
        public.verify(bytes.fromhex(signature["signature"]), _CONTEXT + digest.encode())
    except Exception:
        raise SignatureError("the file's signature does not fit its contents.") from None
    if wanted is not None and public.public_bytes_raw() != wanted:
        raise SignatureError(Message("the file was signed, but with another key than ", _SIGNED_BY, "."))
    return signature["public_key"]


def _raw(key: Any) -> bytes:
    """The 32 bytes of a public key given as an object, as bytes, or as hex."""
    try:
        raw = bytes.fromhex(key) if isinstance(key, str) else key
        raw = raw if isinstance(raw, bytes) else bytes(raw.public_bytes_raw())
    except (AttributeError, ValueError):
        raw = b""
    if len(raw) != 32:
        expected = Message("must be an Ed25519 public key", Phrase.PUBLIC_KEY)
        raise ArgumentTypeError("signed_by", expected, remedy="Ask the custodian for it.")
    return raw


def _ed25519(needed_by: str) -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise missing_extra(needed_by, "the cryptography package", "sign") from None
    return ed25519
