"""Change any one thing in an honest file and put the digests right: refused, or harmless and documented.

A change that `verify` lets pass must be at a place that ``docs/release-file.md`` lists as the custodian's,
and the guarantee must still follow from the contents, by a few lines that share nothing with the library.
"""

from __future__ import annotations

import copy
import itertools
import math
import re
from pathlib import Path
from types import SimpleNamespace

import forging
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakgp import ReleaseFileError, VerificationError, verify
from cloakgp.files import container

PAGE = Path(__file__).parents[2] / "docs" / "release-file.md"
SECTION = "## What a dishonest custodian could still hide"


def documented():
    """The places that the documentation says are free: arrays, and keys of the manifest."""
    text = PAGE.read_text().split(SECTION)[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall("`([^`]+)`", row)}


FREE = documented()


def delta_of(epsilon, mu):
    """Balle & Wang (2018), theorem 8, in 60 digits."""
    import mpmath as mp

    with mp.workdps(60):
        a, b = mp.mpf(mu) / 2 - mp.mpf(epsilon) / mu, -mp.mpf(mu) / 2 - mp.mpf(epsilon) / mu
        return float(mp.ncdf(a) - mp.exp(epsilon) * mp.ncdf(b))


def longest(columns, labels, people):
    """The longest sum of one person's columns with any signs; of one column, if there are no people."""
    owned = columns if labels is None else [columns[label] for label in labels]
    people = range(len(owned)) if people is None else people.tolist()
    found = 0.0
    for person in set(people):
        own = np.array([c for c, one in zip(owned, people, strict=True) if one == person], dtype=float)
        for signs in itertools.product((1.0, -1.0), repeat=len(own)):
            found = max(found, float(np.linalg.norm(np.array(signs) @ own)))
    return found


def unit_of(manifest):
    """What the contents can protect."""
    if "grid" in manifest:
        return "one whole row" if manifest["grid"]["max_rows"] is None else "one person's whole rows"
    return "one person" if "people" in manifest else "one row"


def furthest(columns, people):
    """The largest distance of two columns; for people, zero is one of them."""
    columns = np.array([*columns, [0] * len(columns[0])] if people else columns, dtype=float)
    return max(float(np.linalg.norm(columns - one, axis=1).max()) for one in columns)


def stages_follow(manifest, arrays):
    """Whether the guarantee of all stages together follows, and each earlier release's own."""
    c, at, promises = manifest["certificate"], 0, []
    own = len(manifest["stages"]) - sum(one["stages"] for one in manifest["given"])
    classes = manifest["model"]["classes"] if manifest["model"]["outcome"] == "classes" else []
    for claim, n in [*((one, one["stages"]) for one in manifest["given"]), (c, own)]:
        squared = 0.0
        for number in range(at, at + n):
            words = manifest["stages"][number]
            columns = arrays[f"matrix_{number}"].T.tolist()
            labels = labels_of(arrays, len(columns))
            people = arrays.get("people")
            most = np.bincount(people).max() if people is not None else 1
            if "grid" in manifest:
                people, labels, most = None, None, manifest["grid"]["max_rows"] or 1
            if classes:  # two entries of an outcome's vector change; any signs, for people
                columns = [[abs(v) for v in column] for column in columns] if people is not None else columns
            steps = longest(columns, labels, people) * 2 ** words["y_bits"]
            steps *= math.sqrt(2) if classes and not ("grid" in manifest and number == 0) else 1
            if "grid" in manifest:
                steps = most * (steps if number else furthest(columns, manifest["grid"]["max_rows"]))
            squared += (steps / words["sigma"]) ** 2
            spread = words["spread"]
            if spread is not None:
                squared += (most * 2.0 ** (spread["y_bits"] + spread["matrix_bits"]) / spread["sigma"]) ** 2
            least = min(words["sigma"], 2**62 if spread is None else spread["sigma"])
            promises.append(least >= 2**30)
        at += n
        promises.append(delta_of(claim["epsilon"], math.sqrt(squared)) <= claim["delta"] * (1 - 5e-8))
    return all(promises)


def labels_of(arrays, columns):
    """The column of each row: that of its cell, or of all that are alike, in the order of the first ones."""
    if "X" not in arrays or len(arrays["X"]) == columns:
        return None
    if "cells" in arrays:
        away = np.abs(arrays["X"][:, None] - arrays["cells"]) * arrays["scale"]
        return away.sum(axis=2).argmin(axis=1)
    alike = [arrays["X"], *(arrays[name][:, None] for name in ("noise", "lower", "upper") if name in arrays)]
    if "people" in arrays:
        alike.append(np.bincount(arrays["people"])[arrays["people"]][:, None])
    rows = list(map(tuple, np.hstack(alike).tolist()))
    order = list(dict.fromkeys(rows))
    return [order.index(row) for row in rows]


def follows(manifest, arrays):
    """Whether the guarantee follows from the contents."""
    c, words = manifest["certificate"], manifest["stages"][-1]
    if c["insecure"] or not c["unit"] == manifest["unit"] == unit_of(manifest) or words["sigma"] < 2**30:
        return False
    if "matrix_0" in arrays:
        return stages_follow(manifest, arrays)
    # Verified in part: the promise is for the sensitivity that is claimed.
    mu = words["sensitivity_steps"] / words["sigma"]
    return delta_of(c["epsilon"], mu) <= c["delta"] * (1 - 5e-8)


def leaves(value, path=()):
    """Every value in a manifest, with where it is."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, (*path, index))
    else:
        yield path


def at(value, path):
    for key in path:
        value = value[key]
    return value


NUMBERS = st.sampled_from(
    [
        lambda v: v + 1,
        lambda v: v - 1,
        lambda v: -v,
        lambda v: 0 * v,
        lambda v: 2 * v,
        lambda v: v + v / 2**10,
    ]
) | st.integers(0, 60).map(
    lambda bit: lambda v: v ^ (1 << bit) if isinstance(v, int) else v * (1 + 2.0**-bit)
)
WORDS = st.text(max_size=12)


def changed(value, draw):
    """Another value of the same kind, or of another."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        new = draw(NUMBERS)(value)
        return type(value)(new) if draw(st.booleans()) or not math.isfinite(new) else draw(st.none() | WORDS)
    if isinstance(value, str):
        return draw(st.sampled_from([value + " ", value[:-1], value.upper(), ""]) | WORDS)
    return draw(st.integers(0, 2**53) | WORDS)


class Change:
    """One change, drawn: where it was made, and the contents afterwards."""

    def __init__(self, draw, manifest, arrays):
        self.manifest, self.arrays = copy.deepcopy(manifest), {n: a.copy() for n, a in arrays.items()}
        self.place = self.entry(draw) if draw(st.booleans()) else self.word(draw)

    def entry(self, draw):
        name = draw(st.sampled_from(sorted(self.arrays)))
        array = self.arrays[name].reshape(-1)
        index = draw(st.integers(0, array.size - 1))
        with np.errstate(all="ignore"):
            new = draw(NUMBERS)(array[index].item())
        if array.dtype.kind == "i":
            new = max(-(2**63), min(int(new), 2**63 - 1))
        array[index] = new
        return re.sub("_[0-9]+$", "_j", name)

    def word(self, draw):
        path = draw(st.sampled_from(sorted(leaves(self.manifest), key=str)))
        holder = at(self.manifest, path[:-1])
        holder[path[-1]] = changed(holder[path[-1]], draw)
        return ".".join(key for key in path if isinstance(key, str))


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    files = {kind: forging.opened(forging.honest(kind, folder)) for kind in forging.PLANS}
    manifest, arrays, _ = files["mse"]
    manifest = {**manifest, "ledger": {"entry": 3, "head": "a" * 64}}
    manifest["custodians_words_unchecked"] = {"dataset": "heights"}
    return SimpleNamespace(files={**files, "with a receipt": (manifest, arrays, None)}, folder=folder)


def is_free(place):
    """Whether it is listed, or all that it is part of is."""
    parts = place.split(".")
    return any(".".join(parts[:n]) in FREE for n in range(1, len(parts) + 1))


@pytest.mark.parametrize("kind", [*forging.PLANS, "with a receipt"])
def test_a_single_change_is_refused_or_documented_and_harmless(originals, kind):
    manifest, arrays, _ = originals.files[kind]
    path = originals.folder / "changed.cloak"
    container_of = container.pack(manifest, arrays)
    path.write_bytes(container_of)
    assert verify(path).complete == (kind not in forging.IN_PART)
    assert follows(manifest, arrays)

    @settings(max_examples=15 if "rows" in kind else 60)  # whole rows take ten times as long to verify
    @given(st.data())
    def attack(data):
        change = Change(data.draw, manifest, arrays)
        try:
            contents = container.pack(change.manifest, change.arrays)
        except (TypeError, ValueError, OverflowError, UnicodeEncodeError):
            return  # nothing that a file can hold
        path.write_bytes(contents)
        try:
            verify(path)
        except (VerificationError, ReleaseFileError):
            return
        if contents == container_of:
            return
        assert follows(change.manifest, change.arrays), change.place
        assert is_free(change.place), change.place

    attack()
    assert "z_j" in FREE  # or nothing could ever be let pass


OF_ROWS = {  # what random changes hardly find
    "an input's name": (lambda m, a: m["grid"]["axes"][0].update(name="weight"), "grid.axes"),
    "a level": (lambda m, a: m["grid"]["axes"][1].update(levels=["x", "secret"]), "grid.axes"),
    "low bits of a range": (lambda m, a: m["grid"]["axes"][0].update(high=10.000000001), "grid.axes"),
    "low bits of counts": (lambda m, a: a["counts_1"].__imul__(1 + 1e-12), "counts_j"),
}


@pytest.mark.parametrize("what", OF_ROWS)
def test_what_passes_in_a_file_of_whole_rows_is_documented(originals, what):
    manifest, arrays, _ = copy.deepcopy(originals.files["whole rows"])
    change, place = OF_ROWS[what]
    change(manifest, arrays)
    path = originals.folder / "rows.cloak"
    path.write_bytes(container.pack(manifest, arrays))
    assert verify(path).complete
    assert place in FREE


def test_every_place_that_is_documented_is_one(originals):
    """The name of an array, or of something in some kind of file's manifest."""
    known = {"signature.json", "model.classes", "learned.shares", "columns", "table_rows"}
    for manifest, arrays, _ in originals.files.values():
        known |= {re.sub("_[0-9]+$", "_j", name) for name in arrays}
        for path in leaves(manifest):
            parts = [key for key in path if isinstance(key, str)]
            known |= {".".join(parts[:n]) for n in range(1, len(parts) + 1)}
    known |= {f"custodians_words_unchecked.{name}" for name in ("title", "units", "source", "date")}
    assert known >= FREE, FREE - known
