"""The models that users make: they hold settings, and plan releases with them."""

from __future__ import annotations

from dataclasses import fields

from cloakgp.model.auto_gp import LearnedGP
from cloakgp.model.gp import GaussianProcess
from cloakgp.release import planning


class GP(GaussianProcess):
    """A Gaussian-process model of a private outcome.

    Every argument must come from public knowledge, never from y: a bound or a variance that was
    computed from y has already told something about it.

    Parameters
    ----------
    kernel : Kernel or callable
        From :mod:`cloakgp.kernels`, or anything callable as ``k(X, Z) -> matrix``, such as
        scikit-learn's kernels.
    noise : float, (N,) array or callable
        Variance of the observation noise: one number, one per row of X, or a function of X. Outcomes at other
        inputs have the function's, too, in ``predict(..., include_noise=True)``; a file keeps the rows'
        numbers only, and its reader gives a number as `include_noise`.
    bounds : (lo, hi)
        Where outcomes are known to lie. Values outside are clipped. The privacy noise is
        proportional to hi - lo. Each of the two is a number, or, where rows differ, an (N,) array with one
        per row of X or a function of X: see ``docs/windows.md``. Arrays are taken on trust:
        ``bounds=(y - 1, y + 1)`` would publish y.
    mean : float, (N,) array or callable, optional
        Prior mean of the outcome: a number, one per row of X, or a function of X; the middle of the bounds
        if absent. An array says nothing of inputs that are not rows of X: predictions there need a number or
        a function.
    inducing : int or (m, D) array, optional
        Public inducing inputs, for a large data set, or how many of them k-means shall choose from X.
        An exact GP if absent. See ``docs/scale.md``.
    approximation : {"dtc", "fitc"}
        What inducing inputs cannot represent is ignored ("dtc") or counted as noise ("fitc").
    downweight : {None, "leverage"}
        With "leverage", a plan gives rows that stand alone up to 50 times the noise variance, going by X
        only, so that predictions near them need less privacy noise. The plan's model has one variance per
        row then: give `include_noise` this `noise`. See ``docs/designs.md``.
    outcome : {"real", "yes/no", "count"}
        What outcomes are. For yes/no, `kernel` and `mean` are of f with Pr[yes] = Phi(f), and `noise` and
        `bounds` are left out; for counts, of f with rate exp(f), and `noise` is the variance of a count over
        its rate, 1 if absent. See ``docs/outcomes.md``.
    classes : two or more values, optional
        What outcomes may be, public, instead of `outcome`; see :class:`cloakgp.AutoGP`. `kernel` and `mean`
        are then of each class's f.
    noise_function : callable, optional
        With one `noise` per row: the function of X that gives the variance elsewhere, if there is one. Where
        `noise` is a function, that.

    Examples
    --------
    >>> from cloakgp.kernels import EQ
    >>> GP(EQ(25.0, variance=662.5), noise=199.0, bounds=(58.0, 158.0))
    GP(kernel=EQ(lengthscale=25.0, variance=662.5), noise=199.0, bounds=(58.0, 158.0), mean=108.0)
    """

    @classmethod
    def of(cls, model: GaussianProcess) -> GP:
        """A model to plan with, such as the one that was learned: ``GP.of(release.learned.gp).plan(...)``."""
        return cls(**{field.name: getattr(model, field.name) for field in fields(GaussianProcess)})

    plan = planning.plan
    compare = planning.compare
    planner = planning.planner
    plan_rows = planning.plan_rows
    plan_function = planning.plan_function


class AutoGP(LearnedGP):
    """A model of a private outcome that is learned from the release itself.

    The release is made in stages, under one promise: each stage learns from what the stages before it made
    public, so windows close in on where outcomes are, and less noise is needed. See ``docs/learning.md``.

    Parameters
    ----------
    bounds : (lo, hi)
        Where outcomes are known to lie, from public knowledge; generous ones will do. Values outside are
        clipped. For yes/no outcomes they are (0, 1), and can be left out.
    outcome : {"real", "yes/no", "count"}
        What outcomes are. For yes/no (True and False, or 1 and 0) the model is of a probability, for counts
        (0, 1, 2, ...) of a rate: predictions and their intervals stay within what these can be. See
        ``docs/outcomes.md``.
    classes : two or more values, optional
        What outcomes may be, public, instead of `outcome`: texts, whole numbers or truth values, such as
        ("no", "yes"), which is yes/no by other names, or ("car", "bus", "train"). The model is of each
        class's probability. An outcome that is none of them is missing.
    kernels : names out of {"EQ", "Matern32", "Matern52"}, optional
        Families of the smooth part; "EQ" if absent.
    prior : Hyperprior, optional
        What is believed beforehand of lengthscales, signal and noise, instead of `kernels`; public. Other
        outcomes than real ones have no noise of their own: its `noise` is not looked at, and `signal` is in
        shares of the range of f, which is 7 for yes/no, and 6.9 for counts with bounds from 0.
    categories : columns of X, optional
        Those that hold levels, by any numbers, counted from 0: only whether two are equal counts. What they
        change, alone and together with the other columns, is learned.
    seasons : mapping of columns to periods, optional
        Where outcomes may repeat: such as ``{"date": ["week", "year"]}`` for a column of dates ("day", "week"
        or "year"), or after how long, in the column's unit. Columns by name, or counted from 0. How much each
        season changes is learned.
    stages : int, optional
        How many; chosen by a public rule if absent. Of real outcomes, one more counts where they fell.
    inducing : int or (m, D) array, optional
        For many rows: inputs that stand for all, or how many of them k-means shall choose from X. Chosen
        for more than some hundred distinct rows if absent.

    Examples
    --------
    >>> AutoGP(bounds=(0, 250))
    AutoGP(bounds=(0.0, 250.0), kernels=('EQ',))
    """

    plan = planning.plan_learned
    plan_rows = planning.plan_rows
