"""verify(): what it proves, and every lie in a file with right digests that it can see through.

What it cannot see without a signature: whether z holds real noise, real data, or anything else
(any z is possible), and whether the noise was drawn from a seed (the flag is only a word). For a
whole function, which has no redundant predictions: a shift of its values, and where X is withheld,
what only X could tell (``ONLY_SIGNED_FUNCTION``).
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloakgp import ReleaseFileError, SignatureError, VerificationError, verify
from cloakgp.designs import DESIGNS
from cloakgp.kernels import EQ, Constant, Matern32

KERNELS = {"EQ": EQ(2.0), "sum": Matern32(2.0) + Constant(3.0), "product": EQ(3.0) * Matern32(2.0)}


# Honest files


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("calibration", ["analytic", "classic"])
@pytest.mark.parametrize("noise", [0.4, np.geomspace(0.1, 3, 12)], ids=["one noise", "noise per row"])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_honest_files_are_verified(saved, design, calibration, noise, kernel):
    path = saved(design=design, calibration=calibration, noise=noise, kernel=kernel, weights=[1, 2, 3, 4])
    result = verify(path)
    assert (result.epsilon, result.delta, result.unit) == (1.0, 0.01, "one row")
    assert 0 < result.proven_delta <= 0.01
    if calibration == "analytic":
        assert result.proven_delta > 0.00999
    assert result.signed_by is None
    assert len(result.checks) == 3
    assert not any("NOT" in check for check in result.checks)
    assert str(result).startswith("verified: (1, 0.01)-DP, unit one row; not signed")


def test_paths_may_be_text(saved):
    assert verify(str(saved())).epsilon == 1.0


def test_a_file_with_jitter_is_verified(saved):
    verify(saved(kernel=EQ(100.0), noise=1e-18))


def test_custom_kernels_are_said_to_be_unchecked_unless_given(saved):
    kernel = lambda X, Z: np.minimum(X, Z.T) + 1.0  # noqa: E731
    path = saved(kernel=kernel)
    assert any("predictions NOT checked" in check and "kernel=" in check for check in verify(path).checks)
    assert not any("NOT" in check for check in verify(path, kernel=kernel).checks)
    with pytest.raises(VerificationError):
        verify(path, kernel=EQ(0.1))


def test_a_kernel_that_is_given_does_not_excuse_the_one_in_the_file(saved, tamper):
    path = saved()
    tamper(path, model(kernel=EQ(9.0, variance=1.5).to_spec()))
    with pytest.raises((VerificationError, ReleaseFileError)):
        verify(path, kernel=EQ(2.0, variance=1.5))


def test_the_guarantee_is_checked_also_for_custom_kernels(saved, tamper):
    path = saved(kernel=lambda X, Z: np.minimum(X, Z.T) + 1.0)
    tamper(path, lambda manifest, arrays: manifest["certificate"].update(epsilon=0.5))
    with pytest.raises(VerificationError, match="its noise gives delta"):
        verify(path)


def test_insecure_files_are_refused(make_plan, setting, seeded, tmp_path):
    with seeded(0):
        make_plan().release(setting.y).save(tmp_path / "file")
    with pytest.raises(VerificationError, match="INSECURE"):
        verify(tmp_path / "file")


# Lies


def certificate(**changes):
    return lambda manifest, arrays: manifest["certificate"].update(changes)


def scale_certificate(name, factor):
    def change(manifest, arrays):
        value = manifest["certificate"][name]
        manifest["certificate"][name] = type(value)(value * factor)

    return change


def add_to_certificate(name, amount):
    def change(manifest, arrays):
        manifest["certificate"][name] += amount

    return change


def model(**changes):
    return lambda manifest, arrays: manifest["model"].update(changes)


def array(name, change):
    def edit(manifest, arrays):
        arrays[name] = np.ascontiguousarray(change(arrays[name]), dtype=arrays[name].dtype)

    return edit


def entry(name, index, change):
    def edit(manifest, arrays):
        arrays[name][index] = change(arrays[name][index])

    return edit


def unit(word):
    def change(manifest, arrays):
        manifest["unit"] = manifest["certificate"]["unit"] = word

    return change


def longest_column(matrix):
    return int(np.argmax((matrix.astype(float) ** 2).sum(axis=0)))


def stretch_longest(manifest, arrays):
    arrays["matrix"][:, longest_column(arrays["matrix"])] *= 2


def stretch_another(manifest, arrays):
    matrix = arrays["matrix"]
    shortest = int(np.argmin((matrix.astype(float) ** 2).sum(axis=0)))
    matrix[:, shortest] = matrix[:, longest_column(matrix)] * 2


def excused_negation(manifest, arrays):
    """Predictions with the wrong sign, and a bias that would allow for it."""
    arrays["reconstruction"][0] *= -1
    manifest["certificate"]["bias"] = 1e9


LIES = {
    "epsilon halved": certificate(epsilon=0.5),
    "epsilon a little lower": certificate(epsilon=0.999),
    "epsilon a little higher": certificate(epsilon=1.001),
    "epsilon doubled": certificate(epsilon=2.0),
    "epsilon minute": certificate(epsilon=1e-300),
    "epsilon 0": certificate(epsilon=0.0),
    "epsilon negative": certificate(epsilon=-1.0),
    "delta halved": certificate(delta=0.005),
    "delta a little lower": certificate(delta=0.00999),
    "delta a little higher": certificate(delta=0.01001),
    "delta doubled": certificate(delta=0.02),
    "delta minute": certificate(delta=1e-320),
    "delta 0": certificate(delta=0.0),
    "delta 1": certificate(delta=1.0),
    "lower bound": model(bounds=[-2.0, 4.0]),
    "lower bound raised": model(bounds=[0.0, 4.0]),
    "upper bound": model(bounds=[-1.0, 4.1]),
    "both bounds moved": model(bounds=[0.0, 5.0]),
    "both bounds spread": model(bounds=[-1.5, 4.5]),
    "bounds reversed": model(bounds=[4.0, -1.0]),
    "prior mean": model(mean=0.9),
    "lengthscale": model(kernel=EQ(2.1, variance=1.5).to_spec()),
    "kernel variance": model(kernel=EQ(2.0, variance=1.6).to_spec()),
    "another kernel": model(kernel=Matern32(2.0, variance=1.5).to_spec()),
    "y_bits up": add_to_certificate("y_bits", 1),
    "y_bits down": certificate(y_bits=20),
    "matrix_bits up": certificate(matrix_bits=31),
    "matrix_bits down": certificate(matrix_bits=29),
    "bits traded": certificate(y_bits=25, matrix_bits=29),
    "bits 0": certificate(y_bits=0),
    "bits 1000000": certificate(y_bits=1_000_000),
    "sigma up": scale_certificate("sigma", 2),
    "sigma down": scale_certificate("sigma", 0.5),
    "sigma small": certificate(sigma=2**20),
    "sigma 0": certificate(sigma=0),
    "sigma negative": scale_certificate("sigma", -1),
    "sigma immense": certificate(sigma=10**400),
    "mu up": scale_certificate("mu", 1.01),
    "mu down": scale_certificate("mu", 0.99),
    "sensitivity": scale_certificate("sensitivity", 1.01),
    "sensitivity in steps": scale_certificate("sensitivity_steps", 2),
    "sensitivity off by one": lambda manifest, arrays: manifest["certificate"].update(
        sensitivity_steps=manifest["certificate"]["sensitivity_steps"] - 1
    ),
    "noise_scale up": scale_certificate("noise_scale", 1.01),
    "noise_scale down": scale_certificate("noise_scale", 0.99),
    "objective": scale_certificate("objective", 0.5),
    "lower_bound": scale_certificate("lower_bound", 1.001),
    "lower_bound 0": certificate(lower_bound=0.0),
    "lower_bound and gap": certificate(lower_bound=1e-3, gap=0.0),
    "delta_slack negative": certificate(delta_slack=-1.0),
    "delta_slack large": certificate(delta_slack=0.005),
    "n_rows": certificate(n_rows=13),
    "n_measurements": certificate(n_measurements=5),
    "unit": unit("one household"),
    "unit longer": unit("one row of y"),
    "neighbours": certificate(neighbours="nothing is changed"),
    "spend": certificate(spend="release as often as you like"),
    "calibration unknown": certificate(calibration="magic"),
    "design unknown": certificate(design="magic"),
    "matrix doubled": array("matrix", lambda m: m * 2),
    "matrix halved": array("matrix", lambda m: m // 2),
    "matrix zero": array("matrix", lambda m: m * 0),
    "matrix immense": array("matrix", lambda m: np.full_like(m, 2**40)),
    "longest column doubled": stretch_longest,
    "another column made longest": stretch_another,
    "columns swapped": array("matrix", lambda m: m[:, ::-1]),
    "one entry of the matrix": entry("matrix", (0, 0), lambda v: v + 2**20),
    "reconstruction scaled": array("reconstruction", lambda r: r * 1.1),
    "reconstruction negated": array("reconstruction", lambda r: -r),
    "reconstruction entry": entry("reconstruction", (1, 1), lambda v: v + 0.01),
    "reconstruction negated and excused by the bias": excused_negation,
    "bias": certificate(bias=1e9),
    "offset": entry("offset", 0, lambda v: v + 0.01),
    "gp_std": entry("gp_std", 0, lambda v: v * 1.1),
    "gp_std negated": array("gp_std", lambda v: -v),
    "X": entry("X", (3, 0), lambda v: v + 0.1),
    "X reversed": array("X", lambda v: v[::-1]),
    "X_star": entry("X_star", (1, 0), lambda v: v + 0.1),
    "weights": array("weights", lambda w: [1.0, 1.0, 1.0, 50.0]),
    "a negative weight": array("weights", lambda w: [1.0, 1.0, 1.0, -1.0]),
    "z out of reach": entry("z", 0, lambda v: 2**62),
    "z most negative": entry("z", 0, lambda v: -(2**63)),
}


def other_bound(word):
    """Another bound, and every number that follows from it: the largest column may be that long."""

    def change(manifest, arrays):
        c = manifest["certificate"]
        steps = (2 ** c["matrix_bits"] + math.isqrt(len(arrays["z"])) + 1) * 2 ** c["y_bits"]
        ratio = steps / c["sensitivity_steps"] if c["sensitivity_steps"] else 1.0
        mu = math.nextafter(steps / c["sigma"], 1.0)
        c.update(bound=word, sensitivity_steps=steps, mu=mu, sensitivity=c["sensitivity"] * ratio)

    return change


def flip(name):
    def change(manifest, arrays):
        manifest["certificate"][name] = not manifest["certificate"][name]

    return change


# Words that came with function releases; predictions have the exact bound, always.
LIES |= {
    "bound paper": certificate(bound="paper"),
    "bound unknown": certificate(bound="magic"),
    "bound paper, and its numbers": other_bound("paper"),
    "bound unknown, and its numbers": other_bound("magic"),
    "unbiased": flip("unbiased"),
    "a function's design": certificate(design="function"),
    "said to be a function": lambda manifest, arrays: manifest.update(release="function"),
}

HARMLESS = {("volume", "weights")}  # its optimum does not depend on the weights


def cases(kinds, lies, leave_out=()):
    """Every lie about every kind of file."""
    return [
        pytest.param(kind, lie, id=f"{kind}-{name}")
        for kind in kinds
        for name, lie in lies.items()
        if (kind, name) not in leave_out
    ]


@pytest.mark.parametrize(("design", "lie"), cases(DESIGNS, LIES, HARMLESS))
def test_lies_with_right_digests_are_seen_through(saved, tamper, design, lie):
    path = saved(design=design)
    verify(path)
    tamper(path, lie)
    with pytest.raises((VerificationError, ReleaseFileError)):
        verify(path)


def test_the_weights_of_the_volume_design_change_nothing(make_plan, setting):
    """Why a lie about them is let pass: the plan is the same."""
    one, two = make_plan(design="volume"), make_plan(design="volume", weights=[1.0, 1.0, 1.0, 50.0])
    np.testing.assert_allclose(one.noise_cov, two.noise_cov, rtol=0.02)


# Lies about whole functions

BASIS = np.linspace(0.0, 10.0, 5)[:, None]
FUNCTIONS = {
    "exact": {},
    "exact on a basis": {"basis": BASIS},
    "exact with prior noise": {"prior_noise": True},
    "infinity": {"bound": "infinity"},
    "paper": {"bound": "paper"},
    "paper with prior noise": {"bound": "paper", "prior_noise": True},
    "input-free": {"bound": "input-free", "basis": BASIS},
    "varah": {"bound": "varah", "basis": BASIS, "margin": 1.0},
}
HIDDEN = ("input-free", "varah")
SHOWN = tuple(kind for kind in FUNCTIONS if kind not in HIDDEN)


@pytest.fixture
def saved_function(setting, tmp_path):
    """The path of a freshly saved function of a kind."""

    def save(kind, name="function.cloak", *, sign_with=None):
        # Far apart, so that every bound can be had.
        X = setting.X if kind != "varah" else np.arange(12.0)[:, None] * 10
        plan = setting.gp.plan_function(X, epsilon=1.0, delta=0.01, **FUNCTIONS[kind])
        plan.release(setting.y).save(tmp_path / name, sign_with=sign_with)
        return tmp_path / name

    return save


def function(**changes):
    return lambda manifest, arrays: manifest["function"].update(changes)


def scale_reach(manifest, arrays):
    manifest["function"]["reach"] *= 1.1


def hide(word):
    """X and the matrix taken out, and the bound said to be one that hides them."""

    def change(manifest, arrays):
        del arrays["X"], arrays["matrix"]
        manifest["measurement"]["kind"] = "withheld"
        if word is not None:
            manifest["certificate"]["bound"] = word

    return change


def double_objective(manifest, arrays):
    c = manifest["certificate"]
    c.update(objective=c["objective"] * 2, lower_bound=c["lower_bound"] * 2)


def lower_floor(manifest, arrays):
    c = manifest["certificate"]
    c.update(lower_bound=c["objective"] / 2, gap=1.0)


def other_bound_word(manifest, arrays):
    c = manifest["certificate"]
    c["bound"] = {"infinity": "paper", "paper": "infinity", "input-free": "varah", "varah": "input-free"}.get(
        c["bound"], "paper"
    )


ABOUT_PREDICTIONS = {
    "columns swapped",
    "offset",
    "gp_std",
    "gp_std negated",
    "X_star",
    "weights",
    "a negative weight",
    "unbiased",
    "bound paper",
    "bound paper, and its numbers",
    "bound unknown, and its numbers",
    "a function's design",
    "said to be a function",
    "reconstruction negated and excused by the bias",
    "design unknown",
    "n_measurements",
}
ABOUT_X = {"X", "X reversed", "columns swapped"} | {
    name for name in LIES if "matrix" in name or "column" in name
}
ABOUT_X -= {"matrix_bits up", "matrix_bits down"}
SHIFTS = {"both bounds moved", "prior mean"}

FUNCTION_LIES = {name: lie for name, lie in LIES.items() if name not in ABOUT_PREDICTIONS | SHIFTS} | {
    "n_measurements": add_to_certificate("n_measurements", 1),
    "design unknown": certificate(design="magic"),
    "a design of predictions": certificate(design="mse"),
    "said to be predictions": lambda manifest, arrays: manifest.update(release="predictions"),
    "columns swapped": array("matrix", lambda m: m[:, ::-1]),
    "noise of the model": model(noise=0.5),
    "points": entry("points", (1, 0), lambda v: v + 0.1),
    "points reversed": array("points", lambda v: v[::-1]),
    "centre": entry("centre", 0, lambda v: v + 1),
    "centre 0": array("centre", lambda c: c * 0),
    "reach up": scale_reach,
    "reach 0": function(reach=0.0),
    "reach negative": function(reach=-1.0),
    "reach immense": function(reach=1e308),
    "prior_seed negative": function(prior_seed=-5),
    "prior_seed a number with a point": function(prior_seed=5.0),
    "another bound": other_bound_word,
    "bound unknown": certificate(bound="magic"),
    "bound exact": certificate(bound="exact"),
    "bound exact, and no sensitivity": certificate(
        bound="exact", sensitivity_steps=0, sensitivity=0.0, mu=0.0
    ),
    "unbiased": flip("unbiased"),
    "objective, and its bound": double_objective,
    "lower_bound, and the gap": lower_floor,
    "X and the matrix taken out": hide(None),
    "X and the matrix taken out, and said to be input-free": hide("input-free"),
}
ONLY_SIGNED_FUNCTION = {  # any of these is possible, so that only a signature shows it
    "both bounds moved": (tuple(FUNCTIONS), LIES["both bounds moved"]),  # a shift of the whole function
    "prior mean": (tuple(FUNCTIONS), LIES["prior mean"]),  # the same
    "z": (tuple(FUNCTIONS), entry("z", 0, lambda v: v + 1)),
    "another prior_seed": (tuple(FUNCTIONS), function(prior_seed=5)),  # public randomness, or none
    "points reversed": (HIDDEN, FUNCTION_LIES["points reversed"]),  # evenly spaced: the same kernel matrix
    "another bound": (("input-free",), other_bound_word),  # varah's reach comes from its margin alone
    "n_rows": (HIDDEN, certificate(n_rows=13)),
    "noise of the model": (("varah",), model(noise=0.5)),  # its reach comes from the margin, not from this
}
NEEDS_X = ABOUT_X | {"X and the matrix taken out", "X and the matrix taken out, and said to be input-free"}
LEFT_OUT = (
    {(kind, name) for kind in HIDDEN for name in NEEDS_X}
    | {(kind, name) for name, (kinds, _) in ONLY_SIGNED_FUNCTION.items() for kind in kinds}
    | {(kind, "centre 0") for kind in HIDDEN}  # it is 0 there
    | {(kind, "bound exact") for kind in SHOWN if kind.startswith("exact")}
)


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_honest_functions_are_verified(saved_function, kind):
    result = verify(saved_function(kind))
    assert (result.epsilon, result.delta, result.unit) == (1.0, 0.01, "one row")
    assert 0.00999 < result.proven_delta <= 0.01
    unchecked = [check for check in result.checks if "NOT" in check]
    assert len(unchecked) == (2 if kind in HIDDEN else 0)
    assert all("not in the file" in check or "NOT in the file" in check for check in unchecked)


@pytest.mark.parametrize(("kind", "lie"), cases(FUNCTIONS, FUNCTION_LIES, LEFT_OUT))
def test_lies_about_functions_are_seen_through(saved_function, tamper, kind, lie):
    path = saved_function(kind)
    tamper(path, lie)
    with pytest.raises((VerificationError, ReleaseFileError)):
        verify(path)


@pytest.mark.parametrize(
    ("kind", "lie"),
    [
        pytest.param(kind, lie, id=f"{kind}-{name}")
        for name, (kinds, lie) in ONLY_SIGNED_FUNCTION.items()
        for kind in kinds
    ],
)
def test_some_lies_about_functions_are_caught_by_the_signature_alone(
    saved_function, tamper, private_key, kind, lie
):
    unsigned = saved_function(kind, "unsigned")
    signed = saved_function(kind, "signed", sign_with=private_key)
    tamper(unsigned, lie)
    verify(unsigned)
    tamper(signed, lie)
    with pytest.raises(SignatureError):
        verify(signed)


@pytest.mark.parametrize("kind", ["exact", "paper", "input-free"])
def test_noise_of_a_function_too_small_with_all_its_numbers_changed_alike(saved_function, tamper, kind):
    def halve(manifest, arrays):
        c = manifest["certificate"]
        c.update(
            sigma=c["sigma"] // 2,
            mu=c["mu"] * 2,
            noise_scale=c["noise_scale"] / 2,
            objective=c["objective"] / 4,
            lower_bound=c["lower_bound"] / 4,
        )

    path = saved_function(kind)
    tamper(path, halve)
    with pytest.raises(VerificationError, match=r"its noise gives delta = .* at epsilon = 1, not 0\.01"):
        verify(path)


@pytest.mark.parametrize(
    "lie",
    [model(noise=0.5), model(noise=-0.4), model(noise="per row")],
    ids=["more", "negative", "not there"],
)
def test_lies_about_one_noise(saved, tamper, lie):
    path = saved()
    tamper(path, lie)
    with pytest.raises((VerificationError, ReleaseFileError)):
        verify(path)


@pytest.mark.parametrize(
    "lie",
    [entry("noise", 2, lambda v: v * 1.2), entry("noise", 2, lambda v: -v), model(noise=0.4)],
    ids=["one more", "one negative", "one for all"],
)
def test_lies_about_noise_per_row(saved, tamper, lie):
    path = saved(noise=np.geomspace(0.1, 3, 12))
    tamper(path, lie)
    with pytest.raises((VerificationError, ReleaseFileError)):
        verify(path)


@pytest.mark.parametrize(("made", "said"), [("analytic", "classic"), ("classic", "analytic")])
def test_lies_about_the_calibration(saved, tamper, made, said):
    path = saved(calibration=made)
    tamper(path, certificate(calibration=said))
    with pytest.raises(VerificationError):
        verify(path)


def test_classic_above_epsilon_1_is_not_a_promise_of_this_library(saved, tamper):
    path = saved(epsilon=2.0)
    tamper(path, certificate(calibration="classic"))
    with pytest.raises(VerificationError):
        verify(path)


@pytest.mark.parametrize("design", ["mse", "volume"])
def test_lies_about_the_design(saved, tamper, design):
    path = saved(design=design)
    tamper(path, certificate(design={"mse": "volume", "volume": "mse"}[design]))
    with pytest.raises(VerificationError):
        verify(path)


def test_noise_too_small_with_all_its_numbers_changed_alike(saved, tamper):
    """A file that claims epsilon = 1 while every number in it fits a smaller noise."""

    def halve(manifest, arrays):
        c = manifest["certificate"]
        c.update(
            sigma=c["sigma"] // 2,
            mu=c["mu"] * 2,
            noise_scale=c["noise_scale"] / 2,
            objective=c["objective"] / 4,
            lower_bound=c["lower_bound"] / 4,
        )

    path = saved()
    tamper(path, halve)
    with pytest.raises(VerificationError, match=r"its noise gives delta = .* at epsilon = 1, not 0\.01"):
        verify(path)


def test_more_noise_than_promised_is_not_this_librarys_file_either(saved, tamper):
    def double(manifest, arrays):
        c = manifest["certificate"]
        c.update(
            sigma=c["sigma"] * 2,
            mu=c["mu"] / 2,
            noise_scale=c["noise_scale"] * 2,
            objective=c["objective"] * 4,
            lower_bound=c["lower_bound"] * 4,
        )

    path = saved()
    tamper(path, double)
    with pytest.raises(VerificationError, match="does not belong to its epsilon and delta"):
        verify(path)


# Lies that only a signature shows


ONLY_SIGNED = {
    "z": entry("z", 0, lambda v: v + 1),
    "z zero": array("z", lambda z: z * 0),
}


@pytest.mark.parametrize("lie", ONLY_SIGNED.values(), ids=ONLY_SIGNED)
def test_changed_measurements_are_caught_by_the_signature_alone(saved, tamper, private_key, lie):
    """Any z is possible noise, so an unsigned file with another z is as good as the first."""
    unsigned, signed = saved("unsigned"), saved("signed", sign_with=private_key)
    tamper(unsigned, lie)
    verify(unsigned)
    tamper(signed, lie)
    with pytest.raises(SignatureError):
        verify(signed)


def test_an_insecure_file_that_says_it_is_not_is_caught_by_the_signature_alone(
    make_plan, setting, seeded, tamper, private_key, tmp_path
):
    """Seeded noise looks like any other, and the flag is only a word: who signs it vouches for it."""
    with seeded(0):
        make_plan().release(setting.y).save(tmp_path / "signed", sign_with=private_key)
    tamper(tmp_path / "signed", certificate(insecure=False))
    for signed_by in (None, private_key.public_key()):
        with pytest.raises(SignatureError, match="does not fit"):
            verify(tmp_path / "signed", signed_by=signed_by)


def test_insecure_is_refused_even_if_signed(make_plan, setting, seeded, private_key, tmp_path):
    with seeded(0):
        make_plan().release(setting.y).save(tmp_path / "file", sign_with=private_key)
    with pytest.raises(VerificationError, match="INSECURE"):
        verify(tmp_path / "file", signed_by=private_key.public_key())
