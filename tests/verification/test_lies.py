"""Forged files with right digests: each lie meets the reason that it names, in every kind of file it fits.

What no check of an unsigned file can see is in ``docs/release-file.md``; ``test_single_changes.py`` holds
the verifier to that list, and ``test_reasons.py`` shows that no reason to refuse is there for nothing.
"""

from __future__ import annotations

import copy
import hashlib
import math

import forging
import numpy as np
import pytest
from forging import (
    ALONE,
    CLASSES,
    FILE,
    FOR_PEOPLE,
    FUNCTIONS,
    KERNEL,
    PEOPLES_ROWS,
    PREDICTIONS,
    SHOWN,
    STAGED,
    WITH_WINDOWS,
    X,
    array,
    both,
    certificate,
    done,
    entry,
    model,
    outside,
    part,
    protects,
    refusal,
    rewrite,
    scale_noise,
    settle,
    spread,
    stage,
    words,
)

from cloakgp import verify
from cloakgp.core.calibration import calibrate
from cloakgp.kernels import EQ, Matern32
from cloakgp.measure.unit import OUTCOME, PERSON, PERSON_ROWS, ROW
from cloakgp.verification.reasons import Reason

EVERY = tuple(forging.PLANS)
SEVEN = (*PREDICTIONS, *FUNCTIONS)
WIDTH = 5.0  # of the bounds
PUBLIC = tuple(kind for kind in STAGED if "rows" not in kind)  # whose inputs are
WITH_OUTSIDE = ("staged", "people in stages")
OF_ROWS = tuple(kind for kind in STAGED if "rows" in kind)


def times(factor):
    return lambda value: value * factor if isinstance(value, np.ndarray) else type(value)(value * factor)


def plus(amount):
    return lambda value: value + amount


def minus_one(words):
    """Sensitivity in steps, everywhere that it is said."""
    return words(sensitivity_steps=plus(-1))


def stretch_longest(manifest, arrays):
    matrix = arrays["matrix_0"]
    matrix[:, int(np.argmax((matrix.astype(float) ** 2).sum(axis=0)))] *= 2


def hide(manifest, arrays):
    """X and the matrix taken out, and the bound said to be one that hides them."""
    for name in ("X", "matrix_0", "people"):
        arrays.pop(name, None)
    part(bound="input-free")(manifest, arrays)


def other_people(change):
    """Who has which rows changed, and their digest put right."""

    def edit(manifest, arrays):
        arrays["people"] = np.ascontiguousarray(change(arrays["people"]), dtype="<i8")
        manifest["people"]["sha256"] = hashlib.sha256(arrays["people"].tobytes()).hexdigest()

    return edit


def for_rows(manifest, arrays):
    """The noise that would do for one row: what a library writes that forgets to add up a person's."""
    own, matrix = manifest["certificate"]["parts"][0], arrays["matrix_0"].astype(object)
    steps = math.isqrt(int((matrix**2).sum(axis=0).max()) * 4 ** own["y_bits"] - 1) + 1
    scale_noise(manifest, steps / own["sensitivity_steps"])
    settle(manifest, sensitivity_steps=steps)


def repeated(manifest, arrays):
    """The last stage of sums once more, as if there had been a fourth."""
    manifest["stages"].insert(2, copy.deepcopy(manifest["stages"][2]))
    for one, other in ("34", "23"):
        arrays |= {
            name[:-1] + other: array for name, array in list(arrays.items()) if name.endswith(f"_{one}")
        }
    for name in ("edges_3", "atoms_3"):
        del arrays[name]
    c = manifest["certificate"]
    c["shares"].insert(2, c["shares"][2])
    c["shares"] = [share / (1 + c["shares"][2]) for share in c["shares"]]
    c["n_measurements"] = c["n_measurements"] // 4 * 5
    c["mu"] = calibrate(c["epsilon"], c["delta"], n_measurements=c["n_measurements"])


def swapped(manifest, arrays):
    """The second stage after the third, each with the other's share."""
    manifest["stages"][1:3] = manifest["stages"][2:0:-1]
    for name in {name[:-2] for name in arrays if name.endswith("_2")}:
        arrays[f"{name}_1"], arrays[f"{name}_2"] = arrays[f"{name}_2"], arrays[f"{name}_1"]
    c = manifest["certificate"]["shares"]
    c[1], c[2] = c[2], c[1]


def without_windows(manifest, arrays):
    manifest["stages"][1]["windows"] = False
    for name in ("lower", "upper", "slope", "shift", "extra"):
        del arrays[f"{name}_1"]


def with_windows(manifest, arrays):
    """About y, say: nothing works out the windows of a stage that stands alone."""
    manifest["stages"][0]["windows"] = True
    U, q = arrays["matrix_0"].shape[1], len(arrays["z_0"])
    own = {"lower": np.full(U, -0.9), "upper": np.full(U, 3.9), "slope": np.ones(U)}
    arrays |= {f"{name}_0": value for name, value in (own | {"shift": np.zeros(q)}).items()}
    arrays["extra_0"] = np.zeros((q, q))


def with_a_noise_level(manifest, arrays):
    own = manifest["stages"][0]
    names = ("y_bits", "matrix_bits", "sigma", "sensitivity_steps")
    own["spread"] = {name: own[name] for name in names} | {"limit": 1.0}
    arrays["centre_0"] = np.zeros(arrays["matrix_0"].shape[1])
    arrays["z_0"] = np.append(arrays["z_0"], 7)


def without_noise_level(manifest, arrays):
    """Not measured, and what it would have spent is the measurements'."""
    own, share = manifest["stages"][2], manifest["certificate"]["shares"][2]
    outside = own["outside"]["share"]
    less = (0.9 * share - outside) / (share - outside)
    own |= {"spread": None, "sigma": int(own["sigma"] * np.sqrt(less)) + 2**12}
    arrays["z_2"] = arrays["z_2"][:-1].copy()
    del arrays["centre_2"]


def without_outside(manifest, arrays):
    """Not measured, and what it would have spent is the other sums'."""
    own, q, c = manifest["stages"][1], len(arrays["matrix_1"]), manifest["certificate"]
    share = 0.9 * c["shares"][1]
    own["sigma"] = int(own["sigma"] * np.sqrt(1 - own["outside"]["share"] / share)) + 2**12
    own["outside"] = None
    arrays["z_1"] = np.append(arrays["z_1"][:q], arrays["z_1"][-1])
    arrays["shift_1"], arrays["extra_1"] = arrays["shift_1"][:q].copy(), arrays["extra_1"][:q, :q].copy()
    del arrays["outside_1"]


def outside_of_another_part(manifest, arrays):
    """With the noise that goes with it, inside and outside."""
    own, share = manifest["stages"][1], 0.9 * manifest["certificate"]["shares"][1]
    part = own["outside"]["share"]
    left = (share - part) / (share - 1.5 * part)
    own["sigma"] = int(own["sigma"] * np.sqrt(left)) + 2**12
    own["outside"]["sigma"] = int(own["outside"]["sigma"] / np.sqrt(1.5)) + 2**12
    own["outside"]["share"] = 1.5 * part


def outside_of_nothing(number, part=0.15):
    """Of a stage that has no windows, or whose windows are of something else; with noise for its part."""

    def change(manifest, arrays):
        own, matrix = manifest["stages"][number], arrays[f"matrix_{number}"]
        names, q = ("y_bits", "matrix_bits", "sigma", "sensitivity_steps"), len(matrix)
        own["outside"] = {name: own[name] for name in names} | {"share": part}
        own["outside"]["sigma"] = int(own["sigma"] / np.sqrt(part)) + 2**12
        own["sigma"] = int(own["sigma"] / np.sqrt(1 - part)) + 2**12
        arrays[f"outside_{number}"] = matrix.copy()
        arrays[f"z_{number}"] = np.insert(arrays[f"z_{number}"], q, np.arange(q))
        if own["windows"]:
            arrays[f"shift_{number}"] = np.pad(arrays[f"shift_{number}"], (0, q))
            arrays[f"extra_{number}"] = np.pad(arrays[f"extra_{number}"], (0, q))

    return change


def stage_left_out(manifest, arrays):
    """The last of sums, and the one after it: then what was learned is not from the others."""
    del manifest["stages"][2:]
    for name in [name for name in arrays if name.endswith(("_2", "_3"))]:
        del arrays[name]


def without_bins(manifest, arrays):
    """A stage of sums in place of the one that counts where outcomes fell."""
    manifest["stages"][3]["bins"] = False
    for name in ("edges_3", "atoms_3"):
        del arrays[name]


def of_no_category(manifest, arrays):
    manifest["model"]["prior"]["categories"] = []
    for one in manifest["learned"]:
        del one["shares"]
        one["lengthscale"] = [*one["lengthscale"], 1.0]


def promised_before(epsilon, delta):
    return done(words("given", 0, epsilon=epsilon, delta=delta), certificate(before=[[epsilon, delta]]))


def noise_for_one_class(number):
    """As if a label moved the sums of one class."""
    smaller = lambda value: math.ceil(value / math.sqrt(2))  # noqa: E731
    return stage(number, sensitivity_steps=smaller, sigma=smaller)


def a_class_less(*numbers):
    """Throughout: a file that says three and has the sums of three."""

    def change(manifest, arrays):
        del manifest["model"]["classes"][3]
        for number in numbers:
            arrays[f"z_{number}"] = arrays[f"z_{number}"][: 3 * len(arrays[f"matrix_{number}"])]

    return change


def given_to_classes(manifest, arrays):
    """The same once more, as if it had been given: nobody reads earlier sums of classes."""
    c = manifest["certificate"]
    promise = {name: c[name] for name in ("epsilon", "delta", "mu")} | {"most": c["n_measurements"]}
    manifest["given"] = [{**promise, "stages": 1, "shares": [1.0], "bounds": [0.0, 1.0]}]
    c["before"] = [[c["epsilon"], c["delta"]]]
    manifest["stages"] *= 2
    arrays |= {f"{name}_1": arrays[f"{name}_0"] for name in ("matrix", "z")}


def opposite_columns(manifest, arrays):
    """No column is longer, but a row that keeps its class may go twice as far."""
    matrix = arrays["matrix_1"]
    longest = int(np.argmax((matrix.astype(float) ** 2).sum(axis=0)))
    matrix[:, longest - 1] = -matrix[:, longest]


def noise_for_one_column(manifest, arrays):
    """As if rows could only leave: norms in the place of distances, with all that follows."""
    own, matrix = manifest["stages"][0], arrays["matrix_0"]
    steps = math.isqrt(max(sum(int(v) ** 2 for v in column) for column in matrix.T.tolist())) + 1
    own["sigma"] = int(float(own["sigma"] * steps // own["sensitivity_steps"]))
    own["sensitivity_steps"] = steps


def one_row_moved(counts):
    """From the fullest cell to the emptiest."""
    counts[np.argmax(counts)] -= 1
    counts[np.argmin(counts)] += 1
    return counts


def readout(**changes):
    return words("stages", 0, "readout", **changes)


def learned(**changes):
    return words("learned", 0, **changes)


def prior(**changes):
    return words("model", "prior", **changes)


def grid(**changes):
    return words("grid", **changes)


def axis(number, **changes):
    return words("grid", "axes", number, **changes)


def arrays_too(**more):
    return lambda manifest, arrays: arrays.update(more)


def eq(*arguments, **options):
    return EQ(*arguments, **options).to_spec()


CELLS = ("inducing, cells",)
OFFSETS = ("mse", "max", "volume", "shared columns", "inducing", *CELLS)
SHARED = ("mse", "shared columns", "function")
ROWS, PEOPLE = ("whole rows",), ("people's whole rows",)
LIES = {  # what is changed; the reason it must meet; in which kinds of file
    # The terms
    "insecure": (certificate(insecure=True), Reason.INSECURE, EVERY),
    "a unit of no library": (words(unit="x"), FILE, EVERY),
    "a household": (done(words(unit="one household"), certificate(unit="one household")), Reason.UNIT, SEVEN),
    "rows that are whole": (protects(ROW), Reason.UNIT, ("mse", "hidden", "staged", *PEOPLES_ROWS)),
    "single outcomes": (protects(OUTCOME), Reason.UNIT, OF_ROWS),
    "people of whole rows": (protects(PERSON_ROWS), Reason.UNIT, ("mse", "staged", *ROWS)),
    "people with one row": (grid(max_rows=1), Reason.UNIT, ROWS),
    "people without a limit": (grid(max_rows=None), Reason.UNIT, PEOPLES_ROWS),
    "a promise to people who are not named": (protects(PERSON), FILE, (*SEVEN, "staged", *OF_ROWS)),
    "a promise to rows": (protects(OUTCOME), FILE, FOR_PEOPLE),
    "people taken out": (lambda m, a: (m.pop("people"), a.pop("people")), FILE, FOR_PEOPLE),
    "people of whole rows named": (words(people={"sha256": "0" * 64, "within": 1.0}), FILE, OF_ROWS),
    "neighbours": (certificate(neighbours="nothing is changed"), Reason.NEIGHBOURS, EVERY),
    "spend": (certificate(spend="release as often as you like"), Reason.SPEND, EVERY),
    "ids of nobody": (certificate(ids="exact"), FILE, ("mse", "staged", *ROWS)),
    "calibration unknown": (certificate(calibration="magic"), Reason.CALIBRATION, SEVEN),
    "calibration classic": (certificate(calibration="classic"), Reason.CALIBRATION, SEVEN),
    "calibration of stages": (certificate(calibration="classic"), FILE, STAGED),
    "design unknown": (certificate(design="magic"), FILE, EVERY),
    "a function's design": (certificate(design="function"), FILE, (*PREDICTIONS, *STAGED)),
    "a design of predictions": (certificate(design="mse"), FILE, (*FUNCTIONS, *STAGED)),
    "the design of stages": (certificate(design="staged"), FILE, ALONE),
    "cells that denoise": (certificate(design="posterior", unbiased=False), Reason.DENOISING, CELLS),
    "status as a message": (part(status="y = 3.14, 2.72"), FILE, ALONE),
    "status of a function": (part(status="closed form"), FILE, PREDICTIONS),
    "bound unknown": (part(bound="magic"), Reason.BOUND, ALONE),
    "a function's bound": (
        part(bound="paper"),
        Reason.BOUND,
        (*PREDICTIONS, "function for people", "hidden"),
    ),
    "the exact bound": (part(bound="exact"), Reason.SENSITIVITY, ("paper",)),
    "the exact bound of nothing": (part(bound="exact"), Reason.BOUND, ("hidden",)),
    "a bound of hidden inputs": (part(bound="varah"), Reason.BOUND, forging.SHOWN),
    "X and the matrix taken out": (hide, Reason.REACH, ("paper",)),
    "X and the matrix of an exact bound taken out": (hide, Reason.SENSITIVITY, ("function",)),
    "X and the matrix of people taken out": (hide, Reason.BOUND, ("function for people",)),
    # The promise
    "epsilon a little lower": (certificate(epsilon=0.999), Reason.CALIBRATION, EVERY),
    "epsilon a little higher": (certificate(epsilon=1.001), Reason.CALIBRATION, EVERY),
    "epsilon minute": (certificate(epsilon=1e-300), Reason.CALIBRATION, SEVEN),
    "a minute promise": (lambda m, a: settle(m, epsilon=1e-13, delta=6e-13), Reason.DELTA, ("mse",)),
    "epsilon 0": (certificate(epsilon=0.0), Reason.RANGE, EVERY),
    "epsilon far out of range": (certificate(epsilon=1e200), Reason.RANGE, EVERY),
    "delta a little lower": (certificate(delta=0.00999), Reason.CALIBRATION, EVERY),
    "delta a little higher": (certificate(delta=0.01001), Reason.CALIBRATION, EVERY),
    "delta minute": (certificate(delta=1e-320), Reason.RANGE, EVERY),
    "delta 1": (certificate(delta=1.0), Reason.RANGE, EVERY),
    "mu up": (certificate(mu=times(1 + 1e-9)), Reason.CALIBRATION, EVERY),
    "mu down": (certificate(mu=times(1 - 1e-9)), Reason.CALIBRATION, EVERY),
    "delta slack": (certificate(delta_slack=0.005), Reason.FIGURE, EVERY),
    "delta slack negative": (certificate(delta_slack=-1.0), Reason.RANGE, EVERY),
    "delta slack by its low bits": (certificate(delta_slack=times(1 + 1e-9)), Reason.DIGITS, EVERY),
    "n_measurements": (certificate(n_measurements=plus(1)), Reason.FIGURE, EVERY),
    "fewer measurements": (certificate(n_measurements=plus(-1)), Reason.FIGURE, STAGED),
    "n_rows": (certificate(n_rows=plus(1)), FILE, (*SHOWN, *PUBLIC)),
    "n_rows of a grid": (certificate(n_rows=plus(1)), Reason.FIGURE, OF_ROWS),
    "fewer rows of a grid": (grid(size=plus(-1)), Reason.FIGURE, OF_ROWS),
    "fewer rows each": (grid(max_rows=1), Reason.FIGURE, PEOPLES_ROWS),
    "another rule": (words(rule=3), Reason.FIGURE, ALONE),
    "shares of a stage alone": (certificate(shares=[0.5]), FILE, ALONE),
    "stages that were never planned": (certificate(shares=[1.0, 1.0]), FILE, ALONE),
    "a stage alone with windows": (with_windows, FILE, SHOWN),
    "a stage alone with a noise level": (with_a_noise_level, FILE, SHOWN),
    "kappa of a stage alone": (words(kappa=2.0), FILE, ALONE),
    "a stage alone that was learned": (words(learned=[{}]), FILE, ALONE),
    "parts of stages": (certificate(parts=[{}, {}]), FILE, STAGED),
    "a kind of readout": (readout(kind="magic"), FILE, ALONE),
    "more stages than were planned": (certificate(shares=[0.5]), FILE, ("staged", *OF_ROWS)),
    # A stage's lattice
    "y_bits down": (both(y_bits=plus(-3)), Reason.SENSITIVITY, SHOWN),
    "y_bits out of range": (both(y_bits=25), Reason.RANGE, ALONE),
    "matrix_bits out of range": (both(matrix_bits=31), Reason.RANGE, ALONE),
    "bits without end": (both(y_bits=1_000_000), FILE, ALONE),
    "bits of the stage": (stage(0, matrix_bits=plus(-1)), Reason.FIGURE, ("mse", "function", *CELLS)),
    "bits of the certificate": (part(matrix_bits=plus(-1)), Reason.FIGURE, ALONE),
    "sigma up": (both(sigma=times(2)), Reason.SHARE, ALONE),
    "sigma down": (both(sigma=lambda v: v // 2), Reason.DELTA, ALONE),
    "sigma of the certificate": (part(sigma=times(2)), Reason.FIGURE, ALONE),
    "sigma immense": (both(sigma=10**400), FILE, ALONE),
    "sensitivity off by one": (minus_one(both), Reason.SENSITIVITY, SHOWN),
    "sensitivity of the certificate": (minus_one(part), Reason.FIGURE, ALONE),
    "sensitivity": (part(sensitivity=times(1 + 1e-15)), Reason.FIGURE, ALONE),
    "noise scale": (part(noise_scale=times(1 + 1e-15)), Reason.FIGURE, ALONE),
    "matrix doubled": (array("matrix_0", times(2)), Reason.SENSITIVITY, (*SHARED, *STAGED)),
    "matrix zero": (array("matrix_0", lambda m: m * 0), Reason.SENSITIVITY, ("mse", "function")),
    "matrix immense": (array("matrix_0", lambda m: m * 0 + 2**40), Reason.SENSITIVITY, ("mse", "function")),
    "a function's matrix immense": (
        array("matrix_0", lambda m: m * 0 + 2**40),
        Reason.ABOVE_BOUND,
        ("paper",),
    ),
    "matrix most negative": (
        array("matrix_0", lambda m: np.full_like(m, -(2**63))),
        Reason.SENSITIVITY,
        ("mse",),
    ),
    "longest column doubled": (stretch_longest, Reason.SENSITIVITY, SHARED),
    "columns swapped": (
        array("matrix_0", lambda m: m[:, ::-1]),
        Reason.PREDICTIONS,
        ("mse", "shared columns", "inducing", "function"),
    ),
    "a column for each row": (array("matrix_0", lambda m: m[:, [0, *range(m.shape[1])]]), FILE, SHOWN),
    "z out of reach": (entry("z_0", 0, lambda v: 2**62), Reason.OVERFLOW, EVERY),
    "z most negative": (entry("z_0", 0, lambda v: -(2**63)), Reason.OVERFLOW, EVERY),
    # The model
    "a lower bound of the outcome": (model(bounds=[-2.0, 4.0]), Reason.FIGURE, SEVEN),
    "both bounds moved": (model(bounds=[0.0, 5.0]), Reason.OFFSET, OFFSETS),
    "bounds far apart": (done(model(bounds=[0.0, 1e250]), lambda m, a: settle(m)), FILE, ("mse",)),
    "bounds too close": (done(model(bounds=[0.0, 1e-250]), lambda m, a: settle(m)), FILE, ("mse",)),
    "bounds reversed": (model(bounds=[4.0, -1.0]), FILE, tuple(k for k in EVERY if k not in WITH_WINDOWS)),
    "prior mean": (model(mean=0.9), Reason.OFFSET, OFFSETS),
    "kernel variance": (model(kernel=eq(2.0, variance=1.6)), Reason.PREDICTIONS, ("mse", "max")),
    "kernel of a posterior": (model(kernel=eq(2.1, variance=1.5)), Reason.DENOISING, ("posterior",)),
    "kernel of a function": (model(kernel=Matern32(2.0).to_spec()), Reason.REACH, ("function", "paper")),
    "kernel of a hidden function": (model(kernel=eq(2.1, variance=1.5)), Reason.SHAPE, ("hidden",)),
    "kernel of cells": (model(kernel=eq(2.1, variance=1.5)), Reason.PREDICTIONS, CELLS),
    "a kernel's custom name": (model(kernel={"kind": "Custom", "name": "y = 3.14"}), FILE, ALONE),
    "a kernel that needs more columns": (model(kernel=eq(2.0, active_dims=[3])), Reason.MODEL, SEVEN),
    "another kernel of rows": (
        model(kernel=(KERNEL * EQ(1.0)).to_spec()),
        Reason.LINE,
        ("rows of a known model",),
    ),
    "noise variance": (model(noise=0.5), Reason.PREDICTIONS, ("mse", "max", "inducing")),
    "noise variance of a function": (model(noise=0.5), Reason.REACH, FUNCTIONS),
    "noise of outcomes that have none": (model(noise=0.5), FILE, ("classes", "rows of classes")),
    "noise variance of a row": (entry("noise", 2, times(1.2)), Reason.PREDICTIONS, ("shared columns",)),
    "an approximation of nothing": (model(approximation="fitc"), FILE, ("mse", "function", "after another")),
    "approximation": (model(approximation="dtc"), Reason.PREDICTIONS, CELLS),
    "no approximation": (model(approximation=None), FILE, ("inducing", *CELLS)),
    "an outcome of a stage alone": (model(outcome="yes/no", bounds=[0.0, 1.0]), FILE, ALONE),
    "X": (entry("X", (3, 0), plus(0.1)), Reason.PREDICTIONS, ("mse", "max", "volume", "inducing")),
    "X of cells": (entry("X", (3, 0), plus(1e-9)), Reason.DIGEST, (*CELLS, "cells")),
    "X of a function": (entry("X", (3, 0), plus(0.1)), Reason.REACH, ("function", "paper")),
    "X_star": (entry("X_star", (1, 0), plus(0.1)), Reason.PREDICTIONS, ("mse", "max", *CELLS)),
    "points": (entry("X_star", (1, 0), plus(0.1)), Reason.SHAPE, ("hidden",)),
    "weights scaled": (array("weights", times(3)), Reason.WEIGHTS, EVERY),
    "weights that are ignored": (array("weights", lambda w: [0.5, 0.5, 1, 2]), Reason.WEIGHTS, ("volume",)),
    "weights of a function": (entry("weights", slice(2), lambda w: [0.5, 1.5]), Reason.WEIGHTS, FUNCTIONS),
    "other weights": (array("weights", lambda w: w[::-1]), Reason.FIGURE, ("mse", "max", "posterior")),
    "a negative weight": (array("weights", lambda w: -w), FILE, EVERY),
    # What is made of the measurements
    "objective": (part(objective=123456.0), Reason.FIGURE, ALONE),
    "lower bound 0": (part(lower_bound=0.0), Reason.RANGE, ALONE),
    "lower bound, with low bits": (part(lower_bound=times(1 - 1e-14)), Reason.DIGITS, ALONE),
    "iterations as a message": (part(iterations=2**62), Reason.RANGE, ALONE),
    "jitter as a message": (part(jitter=3.14), Reason.JITTER, forging.SHOWN),
    "unbiased": (certificate(unbiased=lambda v: not v), Reason.UNBIASED, ALONE),
    "unbiased stages": (certificate(unbiased=True), FILE, STAGED),
    "reconstruction negated": (array("reconstruction_0", lambda r: -r), Reason.PREDICTIONS, ("mse", *CELLS)),
    "reconstruction scaled": (array("reconstruction_0", times(1.1)), Reason.FIGURE, ("mse", *CELLS)),
    "reconstruction of a function": (array("reconstruction_0", times(1.1)), Reason.SHAPE, FUNCTIONS),
    "bias": (part(bias=1e9), Reason.PREDICTIONS, PREDICTIONS),
    "bias of a function": (part(bias=1e9), Reason.UNBIASED, ("function", "paper")),
    "bias of a hidden function": (part(bias=0.1), Reason.HIDDEN, ("hidden",)),
    "jitter of a hidden function": (part(jitter=0.1), Reason.HIDDEN, ("hidden",)),
    "offset by its last bit": (
        entry("offset_0", 0, lambda v: np.nextafter(v, 9)),
        Reason.OFFSET,
        PREDICTIONS,
    ),
    "GP std": (entry("gp_std_0", 0, lambda v: float(f"{v * 1.01:.3e}")), Reason.STD, PREDICTIONS),
    "GP std negative": (entry("gp_std_0", 0, lambda v: -v), Reason.STD, PREDICTIONS),
    "GP std by its low bits": (
        entry("gp_std_0", 0, lambda v: np.nextafter(v, 9)),
        Reason.DIGITS,
        PREDICTIONS,
    ),
    "reach": (readout(reach=times(1.1)), Reason.REACH, FUNCTIONS),
    "reach 0": (readout(reach=0.0), Reason.RANGE, FUNCTIONS),
    # Cells
    "inducing": (array("inducing", lambda a: a + 0.1), Reason.PREDICTIONS, CELLS),
    "too many of them": (array("inducing", lambda a: np.resize(a, (10_001, 1))), FILE, CELLS),
    "a digest": (words(inputs_sha256="0" * 64), Reason.DIGEST, (*CELLS, "people, cells", "cells")),
    "a cell's mean": (entry("means", (1, 0), plus(1e-6)), Reason.CELLS, (*CELLS, "cells")),
    "a cell's spread": (entry("spreads", (1, 0), plus(1e-6)), Reason.CELLS, (*CELLS, "cells")),
    "a spread below nothing": (entry("spreads", (1, 0), lambda v: -1.0), FILE, (*CELLS, "cells")),
    "no spreads": (lambda manifest, arrays: arrays.pop("spreads"), FILE, (*CELLS, "cells")),
    "rows of people in a cell": (entry("rows_each", 0, plus(1.0)), Reason.PEOPLE, ("people, cells",)),
    "cells of few rows": (arrays_too(cells=X[:5], means=X[:5]), FILE, ("mse", "inducing")),
    "a digest of what is shown": (words(inputs_sha256="0" * 64), FILE, EVERY[:6] + FUNCTIONS + ROWS),
    "a bound of a row": (entry("upper", 3, plus(0.1)), Reason.PREDICTIONS, ("windows",)),
    "a mean of a row": (entry("mean_rows", 3, plus(0.1)), Reason.OFFSET, ("windows",)),
    "a mean of a point": (array("mean_star", plus(0.1)), Reason.OFFSET, ("windows",)),
    "a bound of a cell": (entry("upper", 0, plus(0.1)), Reason.PREDICTIONS, ("cells with windows",)),
    "a mean of a cell": (entry("mean_rows", 3, plus(0.1)), Reason.OFFSET, ("cells with windows",)),
    "bounds of rows that have none": (model(bounds=[0.0, 1.0], mean=0.5), FILE, WITH_WINDOWS),
    "rows' bounds that are not there": (model(bounds="per row", mean="per row"), FILE, ("mse", *STAGED)),
    "rows' bounds of a function": (
        done(model(bounds="per row"), arrays_too(lower=X[:, 0] * 0, upper=X[:, 0] * 0 + 5)),
        FILE,
        FUNCTIONS,
    ),
    "rows' bounds that hold nothing": (array("upper", plus(-100)), FILE, WITH_WINDOWS),
    # People
    "noise for one row": (for_rows, Reason.SENSITIVITY, ("people", "function for people")),
    "a person for each row": (other_people(lambda v: np.arange(12)), Reason.SENSITIVITY, FOR_PEOPLE[:2]),
    "a person for each row of a cell": (
        other_people(lambda v: np.arange(12)),
        Reason.PEOPLE,
        FOR_PEOPLE[2:3],
    ),
    "all rows one person's": (other_people(lambda v: v * 0), Reason.SENSITIVITY, FOR_PEOPLE[:2]),
    "people in another order": (other_people(lambda v: v.max() - v), FILE, FOR_PEOPLE),
    "somebody else's row": (entry("people", 5, lambda v: 0), Reason.PEOPLE, FOR_PEOPLE),
    "a digest of other people": (words("people", sha256=lambda v: v[::-1]), Reason.PEOPLE, FOR_PEOPLE),
    "a correlation above 1": (words("people", within=1.5), FILE, FOR_PEOPLE),
    "another correlation": (words("people", within=0.3), Reason.WINDOWS, ("people in stages",)),
    # Stages
    "shares above all": (certificate(shares=[0.3, 0.4, 0.5, 0.04]), Reason.SHARES, ("staged",)),
    "another split": (certificate(shares=[0.3, 0.3, 0.36, 0.04]), Reason.SHARE, ("staged",)),
    "a share of more": (certificate(shares=[0.2, 0.3, 1.5]), FILE, ("staged",)),
    "sensitivity of a stage off by one": (
        minus_one(lambda **c: stage(1, **c)),
        Reason.SENSITIVITY,
        ("staged",),
    ),
    "the last matrix doubled": (array("matrix_2", times(2)), Reason.SENSITIVITY, ("staged", *ROWS)),
    "an entry of the first matrix": (
        entry("matrix_0", (0, 0), lambda v: 2**31),
        Reason.SENSITIVITY,
        ("staged",),
    ),
    "half the noise": (stage(2, sigma=lambda v: v // 2), Reason.DELTA, ("staged",)),
    "half the first stage's noise": (stage(0, sigma=lambda v: v // 2), Reason.DELTA, STAGED),
    "a hundredth less noise": (stage(0, sigma=lambda v: v - v // 100), Reason.DELTA, ROWS),
    "twice the noise": (stage(2, sigma=times(2)), Reason.SHARE, ("staged",)),
    "no noise": (stage(1, sigma=0), Reason.RANGE, ("staged",)),
    "little noise": (stage(1, sigma=2**29), Reason.NOISE_FLOOR, ("staged",)),
    "bits of y": (stage(1, y_bits=25), Reason.RANGE, ("staged",)),
    "bits of the matrix": (stage(1, matrix_bits=31), Reason.RANGE, ("staged",)),
    "a noise level's sensitivity": (
        spread(1, sensitivity_steps=lambda v: v // 2),
        Reason.SENSITIVITY,
        ("staged",),
    ),
    "a noise level on another lattice": (spread(1, matrix_bits=plus(1)), Reason.SENSITIVITY, ("staged",)),
    "a noise level's noise": (spread(1, sigma=lambda v: v // 4), Reason.DELTA, ("staged",)),
    "more of a noise level's noise": (spread(1, sigma=lambda v: v + v // 10**6), Reason.SHARE, ("staged",)),
    "a noise level out of reach": (
        spread(1, y_bits=24, matrix_bits=38, sensitivity_steps=2**62),
        Reason.OVERFLOW,
        ("staged",),
    ),
    "bits of a noise level without end": (spread(1, matrix_bits=2**62), FILE, ("staged",)),
    "less noise outside": (outside(1, sigma=lambda v: v // 2), Reason.DELTA, (*WITH_OUTSIDE, "categories")),
    "more noise outside": (outside(2, sigma=times(2)), Reason.SHARE, WITH_OUTSIDE),
    "hardly any noise outside": (outside(1, sigma=2**29), Reason.NOISE_FLOOR, WITH_OUTSIDE),
    "sensitivity outside off by one": (
        outside(1, sensitivity_steps=plus(-1)),
        Reason.SENSITIVITY,
        (*WITH_OUTSIDE, "cells"),
    ),
    "the matrix outside doubled": (array("outside_1", times(2)), Reason.SENSITIVITY, WITH_OUTSIDE),
    "a longer column outside": (
        entry("outside_2", (0, 3), lambda v: 2**31),
        Reason.SENSITIVITY,
        (*WITH_OUTSIDE,),
    ),
    "bits of y outside": (outside(1, y_bits=plus(-1)), Reason.SENSITIVITY, WITH_OUTSIDE),
    "bits outside without end": (outside(1, matrix_bits=31), Reason.RANGE, WITH_OUTSIDE),
    "a share outside that is not its noise's": (outside(1, share=times(2)), Reason.SHARE, WITH_OUTSIDE),
    "a share outside of nothing": (outside(1, share=0.0), FILE, WITH_OUTSIDE),
    "a share outside of more than the stage has": (outside(1, share=0.99), Reason.SHARE, WITH_OUTSIDE),
    "no share outside": (lambda m, a: m["stages"][1]["outside"].pop("share"), FILE, WITH_OUTSIDE),
    "outside of another part": (outside_of_another_part, Reason.OUTSIDE, WITH_OUTSIDE),
    "nothing outside": (without_outside, Reason.OUTSIDE, WITH_OUTSIDE),
    "a matrix outside that is not told": (stage(1, outside=None), FILE, WITH_OUTSIDE),
    "no matrix outside": (lambda m, a: a.pop("outside_1"), FILE, WITH_OUTSIDE),
    "outside of bounds": (outside_of_nothing(0), FILE, ("staged", "yes/no", "classes")),
    "outside of windows of rows": (outside_of_nothing(2), FILE, OF_ROWS),
    "outside of a known model's windows": (outside_of_nothing(1), Reason.OUTSIDE, ("after another",)),
    "a shift outside": (entry("shift_2", -1, plus(0.1)), Reason.LINE, ("staged",)),
    "what is left over outside": (entry("extra_2", (-1, -1), times(1e6)), Reason.LINE, ("staged",)),
    "what inside and outside have in common": (
        entry("extra_2", (0, -1), plus(1.0)),
        Reason.LINE,
        ("staged",),
    ),
    "a learned skew": (learned(skew=times(1.001)), Reason.LEARNED, ("staged",)),
    "no skew": (learned(skew=0.0), FILE, ("staged",)),
    "the prior's skew": (prior(skew=[0.3, 9.0]), Reason.WINDOWS, ("staged",)),
    "a window": (entry("upper_1", 3, plus(-1e-5 * WIDTH)), Reason.WINDOWS, ("staged",)),
    "a window of the last stage": (entry("lower_2", 3, plus(1e-5 * WIDTH)), Reason.WINDOWS, ("staged",)),
    "an empty window": (entry("upper_1", 3, lambda v: -9.0), FILE, ("staged",)),
    "a slope": (entry("slope_1", 0, plus(-1e-3)), Reason.LINE, ("staged",)),
    "a shift": (entry("shift_2", 0, plus(0.1)), Reason.LINE, ("staged",)),
    "what clipping adds": (array("extra_1", lambda v: v * 2 + 1), Reason.LINE, ("staged",)),
    "from where distances are": (entry("centre_1", 0, plus(1e-5 * WIDTH)), Reason.DISTANCES, ("staged",)),
    "up to where distances are": (spread(2, limit=times(1.0001)), Reason.DISTANCES, ("staged",)),
    "windows of another width": (words(kappa=times(0.5)), Reason.WINDOWS, ("staged",)),
    "no kappa": (words(kappa=None), Reason.WINDOWS, ("staged",)),
    "wider bounds": (model(bounds=[-1.0, 4.001]), Reason.WINDOWS, ("staged",)),
    "bounds without width": (model(bounds=[0.0, 1e-200]), Reason.RANGE, ("staged",)),
    "the prior's noise": (prior(noise=[0.02, 0.3]), Reason.WINDOWS, ("staged",)),
    "the prior's families": (prior(kernels=["Matern32"]), Reason.WINDOWS, ("staged",)),
    "the prior's families without end": (prior(kernels=["EQ"] * 1000), FILE, ("staged",)),
    "one family twice": (prior(kernels=["EQ", "EQ"]), FILE, ("staged",)),
    "X of stages": (entry("X", (3, 0), plus(0.1)), Reason.WINDOWS, ("staged",)),
    "an earlier answer": (entry("z_0", 0, plus(2**56)), Reason.WINDOWS, ("staged", "after another")),
    "the last sums": (entry("z_2", 0, plus(2**60)), Reason.BINS, ("staged",)),
    "an edge of a bin": (entry("edges_3", (0, 2), plus(2**10)), Reason.BINS, ("staged", *ROWS)),
    "an edge beyond the bounds": (entry("edges_3", (0, 8), lambda v: 2**24 + 1), FILE, ("staged",)),
    "an atom": (entry("atoms_3", (0, 1), plus(2**20)), Reason.BINS, ("staged",)),
    "an atom of nothing": (entry("atoms_3", (0, 1), lambda v: 0), FILE, ("staged",)),
    "an atom of more than all": (entry("atoms_3", (0, 0), lambda v: 2**30 + 1), FILE, ("staged",)),
    "bins that are said to be sums": (without_bins, FILE, ("staged",)),
    "bins in which rows count unlike": (entry("matrix_3", (0, 1), plus(-1)), Reason.BINS, ("staged", *ROWS)),
    "a row that moves one bin": (noise_for_one_class(3), Reason.SENSITIVITY, ("staged", *ROWS)),
    "a learned noise": (learned(noise=times(1.001)), Reason.LEARNED, ("staged",)),
    "a learned level": (learned(level=times(1.001)), Reason.LEARNED, ("staged",)),
    "a learned weight": (learned(weight=times(0.999)), Reason.LEARNED, ("staged",)),
    "a learned model left out": (words(learned=lambda v: v[:-1]), Reason.LEARNED, ("staged",)),
    "a learned model twice": (words(learned=lambda v: [*v[:-1], v[0]]), Reason.LEARNED, ("staged",)),
    "a stage repeated": (repeated, Reason.DELTA, ("staged",)),
    "stages swapped": (swapped, Reason.WINDOWS, ("staged",)),
    "a stage without its windows": (done(without_outside, without_windows), Reason.WINDOWS, ("staged",)),
    "a stage without its noise level": (without_noise_level, Reason.DISTANCES, ("staged",)),
    "a stage left out": (stage_left_out, Reason.LEARNED, ("staged",)),
    # What was given
    "an earlier release's noise": (stage(0, sigma=lambda v: v // 2), Reason.DELTA, ("after another",)),
    "an earlier release's matrix": (array("matrix_0", times(2)), Reason.SENSITIVITY, ("after another",)),
    "an earlier release's delta": (promised_before(1.0, 0.009), Reason.DELTA, ("after another",)),
    "an earlier release's mu": (words("given", 0, mu=times(0.9)), Reason.MU, ("after another",)),
    "an earlier release's numbers": (words("given", 0, most=3), Reason.FIGURE, ("after another",)),
    "an earlier release's epsilon": (promised_before(1e9, 0.01), Reason.RANGE, ("after another",)),
    "another pair before": (certificate(before=[[1.0, 0.1]]), FILE, EVERY),
    "nothing given": (words(given=[]), FILE, ("after another",)),
    # Outcomes
    "real outcomes": (model(outcome="number"), FILE, ("yes/no",)),
    "an outcome without a name": (model(outcome="maybe"), FILE, ("yes/no", "classes")),
    "bounds of no chance": (model(bounds=[0.0, 2.0]), FILE, ("yes/no", "classes", "rows of classes")),
    "counts below 0": (model(outcome="count", bounds=[-1.0, 2.0]), FILE, ("yes/no",)),
    "a class twice": (model(classes=["a", "b", "c", "a"]), FILE, ("classes", "rows of classes")),
    "a class that is a list": (model(classes=["a", "b", "c", ["d"]]), FILE, ("classes",)),
    "a text of classes": (model(classes="abcd"), FILE, ("classes",)),
    "a class less": (model(classes=CLASSES[:3]), FILE, ("classes", "rows of classes")),
    "two classes": (model(outcome="yes/no", classes=["a", "b"]), FILE, ("classes",)),
    "yes and no": (model(outcome="yes/no"), FILE, ("classes",)),
    "noise for one class": (noise_for_one_class(0), Reason.SENSITIVITY, ("classes", "classes of people")),
    "classes that were given": (given_to_classes, FILE, ("classes", "classes of people")),
    "a class less throughout": (a_class_less(0), Reason.FIGURE, ("classes", "classes of people")),
    "rows' noise for one class": (noise_for_one_class(1), Reason.SENSITIVITY, OF_ROWS[-2:]),
    "a class less in sums": (a_class_less(*range(1, 3)), Reason.FIGURE, OF_ROWS[-2:]),
    "opposite columns of classes": (opposite_columns, Reason.SENSITIVITY, OF_ROWS[-2:]),
    "far columns of classes": (array("matrix_1", plus(2**45)), Reason.RANGE, OF_ROWS[-2:]),
    # Categories
    "two shares of three": (learned(shares=[0.5, 0.5]), FILE, ("categories",)),
    "shares above 1": (learned(shares=[0.5, 0.5, 0.5]), FILE, ("categories",)),
    "shares below 0": (learned(shares=[1.5, -0.25, -0.25]), FILE, ("categories",)),
    "a share that is a text": (learned(shares=["0.5", 0.25, 0.25]), FILE, ("categories",)),
    "lengthscales of levels": (learned(lengthscale=[0.1, 0.1]), FILE, ("categories",)),
    "no shares": (
        words(learned=lambda v: [{k: o[k] for k in o if k != "shares"} for o in v]),
        FILE,
        ("categories",),
    ),
    "a category of no column": (prior(categories=[2]), FILE, ("categories",)),
    "a category twice": (prior(categories=[1, 1]), FILE, ("categories",)),
    "a truth value of a category": (prior(categories=[True]), FILE, ("categories",)),
    "other shares": (learned(shares=[0.98, 0.01, 0.01]), Reason.LEARNED, ("categories",)),
    "of no category": (of_no_category, Reason.WINDOWS, ("categories",)),
    # Cells
    "a row in another cell": (array("counts", one_row_moved), Reason.CELLS, ("cells",)),
    "more rows in a cell": (entry("counts", 0, plus(1)), FILE, ("cells",)),
    "a digest of other rows": (words(inputs_sha256=lambda v: v[::-1]), Reason.DIGEST, ("cells",)),
    "rows of people in cells": (entry("rows_each", 0, plus(0.25)), Reason.PEOPLE, ("cells of people",)),
    "hardly a row each": (entry("rows_each", 0, lambda v: 0.5), FILE, ("cells of people",)),
    "no digest of cells": (words(inputs_sha256=None), FILE, ("cells",)),
    # Whole rows
    "noise for one column": (noise_for_one_column, Reason.SENSITIVITY, ROWS),
    "a column of counts": (entry("matrix_0", (0, 0), plus(2**41)), Reason.SENSITIVITY, ROWS),
    "all columns of counts far away": (array("matrix_0", plus(2**50)), Reason.RANGE, ROWS),
    "counts that are weighed": (stage(0, y_bits=1), Reason.RANGE, ROWS),
    "distances": (spread(2, sensitivity_steps=plus(-1)), Reason.SENSITIVITY, ROWS),
    "distances of one row": (spread(2, sensitivity_steps=lambda v: v // 2), Reason.SENSITIVITY, PEOPLE),
    "sums of one row": (stage(1, sensitivity_steps=lambda v: v // 2), Reason.SENSITIVITY, PEOPLE),
    "counts of one row": (stage(0, sensitivity_steps=lambda v: v // 2), Reason.SENSITIVITY, PEOPLE),
    "counts": (array("counts_1", times(1.0001)), Reason.COUNTS, ROWS),
    "counts of one cell": (entry("counts_2", 3, plus(0.01)), Reason.COUNTS, ROWS),
    "no rows in a cell": (entry("counts_2", 3, lambda v: 0.0), FILE, ROWS),
    "windows of rows": (array("lower_2", plus(-0.01)), Reason.WINDOWS, ROWS),
    "errors of counts": (array("extra_1", times(0.99)), Reason.LINE, ROWS),
    "a wider range": (axis(0, high=11.0), Reason.LEARNED, ROWS),
    "other cells": (axis(0, cells=6), FILE, ROWS),
    "a level more": (axis(1, levels=["x", "y", "z"]), FILE, ROWS),
    "levels of another kind": (axis(1, levels=[1.5, 2.5]), FILE, ROWS),
    "one name twice": (axis(1, name="a"), FILE, ROWS),
    "no axes": (grid(axes=[]), FILE, OF_ROWS),
    "a population of none": (grid(size=0), FILE, OF_ROWS),
    "inputs of a grid": (arrays_too(X=np.zeros((12, 2))), FILE, OF_ROWS),
    "no grid": (lambda m, a: m.pop("grid"), FILE, OF_ROWS),
    "other categories of a grid": (prior(categories=[0]), FILE, ROWS),
    "no categories of a grid": (prior(categories=[]), FILE, ROWS),
    "sums without windows": (stage(1, windows=False), FILE, OF_ROWS),
    "counts with windows": (stage(0, windows=True), FILE, OF_ROWS),
}


@pytest.fixture(scope="module")
def honest_ones_are_verified(tmp_path_factory):
    for kind in forging.PLANS:
        verify(forging.honest(kind, tmp_path_factory.mktemp("honest")))


@pytest.mark.usefixtures("honest_ones_are_verified")
@pytest.mark.parametrize("name", LIES)
def test_a_lie_meets_the_reason_that_it_names(tmp_path, name):
    change, reason, kinds = LIES[name]
    for kind in kinds:
        path = forging.honest(kind, tmp_path)
        before = path.read_bytes()
        rewrite(path, change)
        assert path.read_bytes() != before, kind
        assert refusal(path) == reason, kind
