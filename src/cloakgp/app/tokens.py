"""Tokens by which people sign in: 256 random bits each, of which only a hash is kept."""

from __future__ import annotations

import hashlib
import hmac
import secrets

BYTES = 32


def new_token() -> str:
    """A token that nobody can guess, fit for an address."""
    return secrets.token_urlsafe(BYTES)


def new_id() -> str:
    """A name for a person or a folder; not a secret."""
    return secrets.token_hex(8)


def hashed(token: str) -> str:
    """What is kept of a token. A plain hash is enough: nobody can try 2^256 tokens."""
    return hashlib.sha256(token.encode()).hexdigest()


def same(one: str, other: str) -> bool:
    """Whether two hashes are equal, in a time that does not tell where they differ."""
    return hmac.compare_digest(one, other)
