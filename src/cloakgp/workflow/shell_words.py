"""The library's messages for people who type commands: its calls and arguments as commands and options."""

from __future__ import annotations

import re

SHELL_WORDS = {
    "Ledger(...).create(...)": "cloakgp ledger create",
    "Ledger.create": "cloakgp ledger create",
    "Ledger.verify(receipts=[...])": "cloakgp ledger verify --release",
    "look at ledger.entries(); if it was, recover(...) on the plan gives the answer.": (
        "look at cloakgp ledger show --entries; if it was, the same command gives the answer, for nothing."
    ),
    "another request name": "--again LABEL for a new answer",
    "(give X=)": "(give --inputs-from)",
    "leave device out": "leave --device out",
    "(give kernel=)": "(in Python, cloakgp.verify takes it as kernel=)",
    "Give it when loading, load(path, kernel=...); or, for a picture, denoised=False.": (
        "In Python, Release.load takes it as kernel=."
    ),
    "y was not read": "the output column was not read",
    "missing = midpoint": "--missing midpoint",
    "url must ": "--ledger must ",
    "url: ": "--ledger: ",
    "releases: ": "",
    "receipts: ": "",
    "an Ed25519 public key: an Ed25519PublicKey, its 32 bytes, or their 64 hex digits.": (
        "an Ed25519 public key, as 64 hex digits."
    ),
    "signed_by ": "--signed-by ",
    "plan_for: X_star": "--then-at",
    "plan_for: ": "--then-",
    "loss_clip ": "--loss-clip ",
    "calibration='classic'": "--calibration classic",
    "calibration='analytic'": "--calibration analytic",
    "data must be a folder": "--data must be a folder",
    "(tls=)": "(--tls CERT KEY)",
    "(behind_proxy=True)": "(--behind-proxy)",
}
"""What the library says, and what is said here instead; the first to fit comes first."""

_CANDIDATE = re.compile(r"candidates\[(\d+)\]")


def in_shell_words(message: str) -> str:
    """A message of the library's, for somebody who types commands."""
    for there, here in SHELL_WORDS.items():
        message = message.replace(there, here)
    return _CANDIDATE.sub(lambda found: f"candidate {int(found[1]) + 1}", message)
