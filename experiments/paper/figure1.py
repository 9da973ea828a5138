"""Figure 1 of the paper: heights of !Kung women by age, by the function's release (A) and cloaked (B).

    CLOAKGP_DATA=folder python experiments/paper/figure1.py [--out DIR]

Left as in the paper, then ours for the same epsilon and delta. The model is the one behind the printed
numbers: EQ kernel, lengthscale 25 years, kernel std 25.74 cm, noise variance 0.3 * 25.74^2, heights
clipped to 58.27 to 158.27 cm, 200 test ages from -10 to 120. Printed errors are at the women's own ages,
by interpolation between the test ages. The lowest panel has the noise of cloaking from -100 to 200 years: it
is largest far beyond the oldest woman, and fades to nothing on both sides. B is also printed for the model
that the footnotes name, with a kernel std of 7.72 cm and a noise std of 14 cm.
"""

from __future__ import annotations

import common
import numpy as np
from common import BLACK, BLUE, GREEN, GREY, ORANGE, PALE, Noisy

import cloakgp
from cloakgp.core.accounting import Gaussian, compose
from cloakgp.core.calibration import delta_of
from cloakgp.data.blas import one_blas_thread
from cloakgp.datasets import fetch_kung, make_kung_like
from cloakgp.kernels import EQ

STD, DELTA, BOUNDS = 25.74, 0.01, (58.27, 158.27)
AGES = np.linspace(-10.0, 120.0, 200)[:, None]
FULL_RANGE = np.arange(-100.0, 201.0)[:, None]
CURVES, DRAWS, SPLITS = 8, 4000, 20
A_EPSILON, B_EPSILON = 50.0, 1.0
CLOAKED = {
    "the paper: volume, classic": {"design": "volume", "calibration": "classic"},
    "volume, analytic": {"design": "volume"},
    "ours: mse, analytic": {"design": "mse"},
    "ours: posterior, analytic": {"design": "posterior"},
}


def model(variance=STD**2, noise=0.3 * STD**2):
    return cloakgp.GP(EQ(25.0, variance=variance), noise, BOUNDS)


def footnote_model():
    """As printed; 7.72 is 0.3 times the kernel std that gives the printed errors."""
    return model(7.72**2, 14.0**2)


def paper_scale(X):
    """The paper's scale of the prior draw in cm, d b(K^-1) c(delta) / epsilon, and b(K^-1)."""
    inverse = np.linalg.inv(EQ(25.0)(X) + 0.3 * np.eye(len(X)))
    b = max(np.maximum(inverse, 0).sum(axis=0).max(), np.maximum(-inverse, 0).sum(axis=0).max())
    return 100 * b * np.sqrt(2 * np.log(2 / DELTA)) / A_EPSILON, b


def paper_function(gp, X, y):
    """Panel A as printed: a draw of the prior of that scale, whatever it promises."""
    gram = EQ(25.0)(AGES) + 1e-9 * np.eye(len(AGES))
    return Noisy(common.exact_mean(gp, X, y, AGES), paper_scale(X)[0] * np.linalg.cholesky(gram))


def function_plan(gp, X, epsilon, bound="exact"):
    return gp.plan_function(X, epsilon=epsilon, delta=DELTA, bound=bound)


def cloaked_plan(gp, X, method, ages=AGES):
    return gp.plan(X, X_star=ages, epsilon=B_EPSILON, delta=DELTA, **CLOAKED[method])


def print_no_privacy(X, y, source):
    print(f"RMSE in cm at the women's ages, {source}")
    print("\nWithout privacy (in print: 6.8)")
    for words, gp in (
        ("kernel std 25.74, noise variance 0.3 * 25.74^2: used below", model()),
        ("kernel std 7.72, noise std 14, as the footnote prints", footnote_model()),
    ):
        print(f"  {words:62}{common.rms(common.exact_mean(gp, X, y, X) - y):8.2f}")


def print_function(gp, X, y, at_women):
    scale, b = paper_scale(X)
    print("\nA. The function's release: std of the noise in cm among the data, and expected RMSE")
    print(f"  {f'the paper, epsilon = {A_EPSILON:g} (scale in print: 28.53)':62}{scale:8.2f}", end="")
    print(f"{paper_function(gp, X, y).at(at_women).expected_rmse(y):8.1f}")
    for epsilon in (A_EPSILON, 1.0):
        for bound in ("paper", "exact"):
            plan = function_plan(gp, X, epsilon, bound)
            asked = common.released_function(plan, y, AGES).at(at_women).expected_rmse(y)
            words = f"{bound} bound, calibrated exactly, epsilon = {epsilon:g}"
            print(f"  {words:62}{plan.noise_at(X).max():8.2f}{asked:8.1f}")
        free = common.denoised(plan, y, AGES).at(at_women).expected_rmse(y)
        print(f"  {f'the last one denoised, epsilon = {epsilon:g}':62}{'':8}{free:8.1f}")
    sensitivity = function_plan(gp, X, 1.0).function.reach * STD  # in the unit of b
    claimed = np.sqrt(2 * np.log(2 / DELTA)) / A_EPSILON  # noise over the bound
    print(f"  b(K^-1) is {b:.2f}; exactly, one cm of one height moves the function by {sensitivity:.3f}")
    print(f"  If b were exact, that noise would have delta = {delta_of(1 / claimed, A_EPSILON):.5f} at 50.")
    true = compose([Gaussian(100 * sensitivity / scale, 1)]).epsilon(DELTA)
    print(f"  The two errors point in opposite ways: it really keeps epsilon = {true:.2f} at delta = 0.01.")


def print_cloaked(gp, X, y, at_women, words):
    print(f"\nB. Cloaking, epsilon = 1, delta = 0.01 (in print: 12.2), {words}")
    columns = ("noise", "RMSE", "median", "<= 12.2", "held out", "denoised")
    print(f"  {'':28}" + "".join(f"{column:>10}" for column in columns))
    for method in CLOAKED:
        plan = cloaked_plan(gp, X, method)
        noisy = common.released(plan, y).at(at_women)
        draws = noisy.drawn_rmses(y, DRAWS, seed=0)
        free = common.denoised(plan, y, AGES).at(at_women).expected_rmse(y)
        held = held_out(gp, X, y, method)
        print(f"  {method:28}{common.rms(noisy.std):10.1f}{noisy.expected_rmse(y):10.1f}", end="")
        print(f"{np.median(draws):10.1f}{100 * np.mean(draws <= 12.2):8.0f} %{held:10.1f}{free:10.1f}")


def explain_cloaked():
    print("  noise: rms std at the women's ages; RMSE: root of the expected squared error, all women in")
    print(
        f"  training and test, as for 6.8; median and share at or below 12.2: of {DRAWS} simulated releases;"
    )
    print(f"  held out: as RMSE, for 50 women not in training, {SPLITS} splits; denoised: RMSE of predict.")


def print_full_range(X):
    print(f"\nStd of cloaking's noise in cm, {len(FULL_RANGE)} test ages from -100 to 200")
    print(f"  {'':40}{'largest':>9}{'at age':>8}{'at 200':>8}{'at -100':>9}")
    for words, gp in (("", model()), (" (footnote)", footnote_model())):
        for method in CLOAKED:
            std = cloaked_plan(gp, X, method, FULL_RANGE).noise_std
            age = FULL_RANGE[std.argmax(), 0]
            print(f"  {method + words:40}{std.max():9.1f}{age:8.0f}{std[-1]:8.3f}{std[0]:9.3f}")


def held_out(gp, X, y, method):
    errors = []
    for train, test in common.splits(len(X), 50, SPLITS):
        at_test = common.interpolation(AGES[:, 0], X[test, 0])
        noisy = common.released(cloaked_plan(gp, X[train], method), y[train]).at(at_test)
        errors.append(noisy.squared_errors(y[test]))
    return np.sqrt(np.mean(errors))


def panels(gp, X, y):
    """For each panel: letter, title, expected release, and drawn ones."""
    prior = paper_function(gp, X, y)
    normals = np.random.default_rng(1).normal(size=(len(AGES), CURVES))
    yield "A", "the paper’s formula; ε = 50", prior, (prior.mean[:, None] + prior.root @ normals).T
    plan, strict = function_plan(gp, X, A_EPSILON), function_plan(gp, X, 1.0)
    with common.seeded(1):
        asked = [plan.release(y).query(AGES) for _ in range(CURVES)]
        free = [strict.release(y).predict(AGES) for _ in range(CURVES)]
    yield "", "exact bound; ε = 50", common.released_function(plan, y, AGES), asked
    yield "", "exact bound; ε = 1, denoised", common.denoised(strict, y, AGES), free
    titles = (
        "the paper: volume, classic; ε = 1",
        "",
        "mse, analytic; ε = 1",
        "posterior, analytic; ε = 1, denoised",
    )
    for letter, method, title in zip("B...", CLOAKED, titles, strict=True):
        if title:
            plan = cloaked_plan(gp, X, method)
            with common.seeded(1):
                drawn = [plan.release(y).mean for _ in range(CURVES)]
            yield letter.strip("."), title, common.released(plan, y), drawn


def draw_panel(ax, gp, X, y, expected, drawn):
    x, exact, std = AGES[:, 0], common.exact_mean(gp, X, y, AGES), common.posterior_std(gp, X, AGES)
    for curve in drawn:
        ax.plot(x, curve, color=GREY, linewidth=0.9, alpha=0.75, label="single releases")
    ax.fill_between(
        x, exact - std, exact + std, color=BLUE, alpha=0.22, linewidth=0, label="GP's own ± 1 std"
    )
    ax.scatter(X[:, 0], y, s=7, color=ORANGE, alpha=0.45, linewidths=0, zorder=2, label="heights")
    ax.plot(x, exact, color=BLUE, linewidth=2.2, zorder=4, label="GP's mean, no privacy")
    for share, style, colour, words in ((1.0, "--", BLACK, "± 1"), (0.25, ":", BLACK, "± ¼")):
        label = f"{words} std of the privacy noise"
        for sign in (1, -1):
            edge = expected.mean + sign * share * expected.std
            ax.plot(x, edge, style, color=colour, linewidth=1.3, zorder=5, label=label)
    if common.rms(expected.mean - exact) > 0.1:
        ax.plot(x, expected.mean, "-.", color=GREEN, linewidth=1.9, zorder=5, label="denoised, on average")
    ax.axhline(BOUNDS[1], color=PALE, linewidth=0.7, zorder=0)
    ax.axhline(BOUNDS[0], color=PALE, linewidth=0.7, zorder=0, label="bounds")


def draw_full_range(ax, gp, X):
    """The noise of cloaking, far beyond the data on both sides."""
    styles = ((ORANGE, "-"), None, (BLUE, "-"), (GREEN, "-."))
    ax.plot(X[:, 0], np.full(len(X), -4.5), "|", color=GREY, markersize=4, alpha=0.5)
    for method, style in zip(CLOAKED, styles, strict=True):
        if style:
            std = cloaked_plan(gp, X, method, FULL_RANGE).noise_std
            ax.plot(FULL_RANGE[:, 0], std, style[1], color=style[0], linewidth=1.8, label=method)
            if std.max() > 20:
                peak = FULL_RANGE[std.argmax(), 0], std.max()
                ax.plot(*peak, "o", color=style[0], markersize=4.5)
                words = f"{peak[1]:.0f} cm at {peak[0]:.0f} years"
                where = {"xytext": (0, -17), "ha": "center", "textcoords": "offset points"}
                ax.annotate(words, peak, color=style[0], **where)
    ax.axvspan(*AGES[[0, -1], 0], color=PALE, alpha=0.2, linewidth=0)
    ax.set(xlim=FULL_RANGE[[0, -1], 0], ylim=(-10, 195), xlabel="age in years", ylabel="noise std in cm")
    ax.set_title("The noise of B over a wider range: it fades where no outcome can move the prediction")
    ax.legend(loc="upper left", bbox_to_anchor=(0.0, 0.98))
    ax.text(0.368, 0.93, "range above", transform=ax.transAxes, color=GREY, fontsize=8.5, va="top")


def draw(gp, X, y, source, out):
    plt = common.pyplot()
    figure = plt.figure(figsize=(13, 10.6), layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=(2.6, 1.0))
    axes = upper.subplots(2, 3, sharex=True, sharey=True)
    draw_full_range(lower.subplots(), gp, X)
    at_women = common.interpolation(AGES[:, 0], X[:, 0])
    for ax, (letter, title, expected, drawn) in zip(axes.flat, panels(gp, X, y), strict=True):
        draw_panel(ax, gp, X, y, expected, drawn)
        rmse = expected.at(at_women).expected_rmse(y)
        ax.set_title(f"{title}\nexpected RMSE {rmse:.1f} cm", linespacing=1.35)
        common.letter(ax, letter)
    axes[0, 0].set(xlim=(-10, 120), ylim=(20, 225))
    for ax in axes[:, 0]:
        ax.set_ylabel("height in cm")
    for ax in axes[1]:
        ax.set_xlabel("age in years")
    entries = {}
    for ax in axes.flat:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    upper.legend(entries.values(), entries.keys(), loc="outside upper center", ncols=4, markerscale=2)
    common.caption(
        lower,
        f"Data: {source}. A: the whole function is released. B: 200 test ages are. "
        "δ = 0.01. RMSE at the women's ages; without privacy it is "
        f"{common.rms(common.exact_mean(gp, X, y, X) - y):.1f} cm.",
        "Heights and the GP's own mean are shown because these data are public; of private ones both "
        f"must stay hidden. {common.SEEDED}",
    )
    common.save(figure, out / "figure1.png")
    plt.close(figure)


def main(out):
    (X, y), source = common.load(fetch_kung, make_kung_like, "287 !Kung women, Howell's census")
    gp, at_women = model(), common.interpolation(AGES[:, 0], X[:, 0])
    with one_blas_thread():
        print_no_privacy(X, y, source)
        print_function(gp, X, y, at_women)
        print_cloaked(gp, X, y, at_women, "kernel std 25.74 cm")
        print_cloaked(
            footnote_model(), X, y, at_women, "the footnote's model: kernel std 7.72, noise std 14 cm"
        )
        explain_cloaked()
        print_full_range(X)
        draw(gp, X, y, source, out)


if __name__ == "__main__":
    main(common.parser(__doc__).parse_args().out)
