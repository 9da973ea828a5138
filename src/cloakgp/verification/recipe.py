"""Check a release whose measurement is a recipe: make its columns again, row by row.

Another processor may round a kernel's value differently, and with it an entry of a column by one unit, or by
more where large terms cancel. How far, is bounded here (lemma 14 of ``docs/proofs.md``); an entry found here
may have been so much larger where it met y, and every sensitivity below counts that. The plan left room.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cloakgp.measurements.recipes import FactoredMeasurement, bias, digest_of, farthest_in_units, middles
from cloakgp.model.gp import GP
from cloakgp.model.inducing import SparseGP, information
from cloakgp.model.smoothers import kernel_matrix
from cloakgp.plans.predictions import Plan
from cloakgp.rows.merging import Inputs, distinct
from cloakgp.rows.sources import as_source
from cloakgp.verification import reasons
from cloakgp.verification.guarantee import absolute_sums, root_rounded_up, squared_norms
from cloakgp.verification.predictions import check_denoising, check_offset, check_std
from cloakgp.verification.reasons import Reason

SENSITIVITY = "integer sensitivity, from X, with what another machine's rounding can add to each column"
_BLOCK = 2**17  # entries of columns made at once


def check(plan: Plan, given: Inputs | None, people: Any = None) -> list[str]:
    """What was checked of a recipe's columns and predictions: the columns only if there are inputs."""
    m = plan.measurement
    assert isinstance(m, FactoredMeasurement)
    inputs, checked = given if m.inputs is None else m.inputs, []
    if inputs is not None:
        reasons.refuse(digest_of(inputs) != m.digest, Reason.DIGEST)
        check_columns(plan.gp, m, inputs, people)
        checked.append(SENSITIVITY)
    check_predictions(plan, inputs)
    check_offset(plan)
    return [*checked, "predictions, from the model and the measurements"]


def named(X: Any, noise: Any, windows: Any, shape: tuple[int, int], digest: str) -> Inputs:
    """X without its repetitions, if it is what the file names by this digest."""
    if getattr(X, "shape", None) is None or isinstance(X, np.ndarray):
        X = X if isinstance(X, np.memmap) else np.asarray(X, dtype=np.float64)
        X = X[:, None] if X.ndim == 1 else X
    reasons.refuse(tuple(X.shape) != shape, Reason.OTHER_INPUTS)
    inputs = distinct(as_source(X, "X"), noise, windows)
    reasons.refuse(digest_of(inputs) != digest, Reason.OTHER_INPUTS)
    return inputs


def check_columns(gp: GP, m: FactoredMeasurement, inputs: Inputs, people: Any = None) -> None:
    """Sensitivity, headroom and sums of the columns of these inputs: exact integers.

    With `people`, who has which rows, the norms of a person's columns are added up, each rounded up.
    """
    longest, with_one, error, q = 0, 0, 0.0, m.n_measurements
    sums, absolute, moved = np.zeros(q, object), np.zeros(q, object), np.zeros(q)
    room = 0.0
    norms: list[int] = []
    norms_with_one: list[int] = []
    step = max(1, _BLOCK // max(q, len(m.recipe.features.Z)))
    for start in range(0, len(inputs), step):
        some = inputs[start : start + step]
        rounded, off = _columns(gp, m, np.asarray(some.X, dtype=np.float64), some.noise, some.windows)
        error = max(error, off)
        # Before they become integers, which would wrap. "not <": it must fail for NaN too.
        reasons.refuse(not (np.abs(rounded).max() < 2.0**62 and error < 2.0**21), Reason.SENSITIVITY)
        columns = rounded.astype(np.int64)
        n = some.counts.astype(np.int64)
        own, own_with_one = squared_norms(columns), squared_norms(np.abs(columns) + 1)
        longest, with_one = max(longest, *own), max(with_one, *own_with_one)
        if people is not None:
            norms += map(root_rounded_up, own)
            norms_with_one += map(root_rounded_up, own_with_one)
        up, down = absolute_sums(np.maximum(columns, 0), n), absolute_sums(np.minimum(columns, 0), n)
        sums, absolute = sums + up - down, absolute + up + down
        if some.windows is not None:
            each = n * middles(some.windows) * m.width / (some.windows[:, 1] - some.windows[:, 0])
            moved += rounded @ each
            room += float(np.abs(each).sum()) + 1e-9 * float((np.abs(rounded) @ np.abs(each)).max())
    largest, apart = max(absolute.tolist()), math.floor(2 * error) + 1
    # A column whose entries are each `apart` units longer is longer by at most so many times root q.
    longer = apart * (math.isqrt(q - 1) + 1) << m.y_bits
    root = root_rounded_up(longest * 4**m.y_bits)
    least, most = root + longer, root + 3 * longer + 2**m.y_bits
    if apart == 1:
        least = root_rounded_up(with_one * 4**m.y_bits)
    if people is not None:
        labels = None if inputs.groups is None else inputs.groups.labels
        most_rows = int(np.bincount(people).max())
        root, least = (_added_up(each, labels, people) << m.y_bits for each in (norms, norms_with_one))
        least = least if apart == 1 else root + most_rows * longer
        most = root + most_rows * (3 * longer + 2 * 2**m.y_bits)
    reasons.refuse(not least <= m.declared <= most, Reason.SENSITIVITY)
    spread = apart * m.n_rows  # what the same rounding can do to sums over all rows
    reasons.refuse((largest + spread) * 2**m.y_bits + 64 * m.sigma >= 2**62, Reason.OVERFLOW)
    reasons.refuse(not abs(largest - m.extent) <= spread, Reason.EXTENT)
    reasons.refuse(np.abs(sums - m.column_sum.astype(object)).max() > spread, Reason.SUMS)
    if m.moved is not None:
        off_by = np.abs(np.ldexp(m.moved, m.matrix_bits) - moved).max()
        reasons.refuse(not off_by <= apart * room, Reason.SUMS, "middle_less_mean")


def _added_up(norms: list[int], labels: Any, people: Any) -> int:
    """The largest sum of one person's norms."""
    each = norms if labels is None else [norms[label] for label in labels.tolist()]
    totals = [0] * (int(people.max()) + 1)
    for person, norm in zip(people.tolist(), each, strict=True):
        totals[person] += norm
    return max(totals)


def _columns(gp: GP, measurement: FactoredMeasurement, X: Any, noise: Any, windows: Any) -> tuple[Any, float]:
    """The recipe, followed: whole numbers, as floats; and at least their error before they were rounded."""
    recipe = measurement.recipe
    W, Z = recipe.features.W, recipe.features.Z
    K = kernel_matrix(gp.kernel, X, Z, "X, inducing")
    u = (len(Z) + 128) * 2.0**-52
    with np.errstate(all="ignore"):  # what is out of range is refused
        scaled = np.ldexp(recipe.factors.astype(np.float64), recipe.matrix_bits - recipe.factor_bits)
        off = 0.0
        if recipe.approximation == "fitc":
            phi = W @ K.T
            known = (phi**2).sum(axis=0)
            noise = noise + np.maximum(gp.kernel.diag(X) - known, 0.0)
            off = (known + 2 * (np.abs(phi) * (np.abs(W) @ np.abs(K.T))).sum(axis=0)) / noise
        error = np.max(u * (1 + off) * (np.abs(scaled) @ np.abs(K.T)).max(axis=0) / noise)
        real = scaled @ K.T / noise
        if windows is not None:  # at most 1, so the error is no larger
            real = real * ((windows[:, 1] - windows[:, 0]) / measurement.width)
        return np.rint(real), float(np.nan_to_num(error, nan=np.inf))


def check_predictions(plan: Plan, inputs: Inputs | None) -> None:
    """The predictions, against the model, as far as the file shows it."""
    gp, m, certificate = plan.gp, plan.measurement, plan.certificate
    assert isinstance(m, FactoredMeasurement)
    features = m.recipe.features
    gram = kernel_matrix(gp.kernel, features.Z, features.Z, "inducing, inducing")
    white = np.allclose(features.W @ gram @ features.W.T, np.eye(len(features.W)), rtol=0, atol=1e-3)
    reasons.refuse(not white, Reason.FEATURES)
    eigenvalues = np.linalg.eigvalsh((m.information + m.information.T) / 2)
    largest = max(float(eigenvalues[-1]), 1.0)
    symmetric = np.allclose(m.information, m.information.T, rtol=0, atol=1e-9 * largest)
    reasons.refuse(not symmetric or eigenvalues[0] < -1e-6 * largest, Reason.NO_INFORMATION)
    if inputs is not None:
        found = information(features, gp.approximation, inputs)
        near = np.allclose(found, m.information, rtol=0, atol=1e-6 * largest)
        reasons.refuse(not near, Reason.INFORMATION)
    model = SparseGP(features, gp.approximation, m.information, plan.X_star)
    denoised = certificate.design == "posterior"
    reasons.refuse(certificate.unbiased == denoised, Reason.UNBIASED)
    if denoised:
        check_denoising(plan, model)
    reasons.refuse(certificate.jitter != 0, Reason.JITTER)
    q = m.n_measurements
    least = bias(gp, model, m, plan.reconstruction, np.zeros((q, q)))
    # At most half a unit is rounded away from each entry of each column.
    rounded = np.abs(plan.reconstruction).sum(axis=1) * m.n_rows * 2.0 ** -(m.matrix_bits + 1)
    most = least + rounded * farthest_in_units(gp, m.width)
    slack = 1e-6 * m.width
    near = least.max() * 0.999 - slack <= certificate.bias <= most.max() * 1.02 + slack
    reasons.refuse(not near, Reason.PREDICTIONS)
    check_std(plan.gp_std, np.sqrt(model.posterior_variance))
