"""``cloakgp plan``: how much noise a release will have, without a look at the output column."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import Annotated, Any, TypeGuard

import numpy as np
import typer

from cloakgp.calibration import default_delta
from cloakgp.cli import options, private_inputs, table_options
from cloakgp.cli.exits import Answer, command, note, table, working
from cloakgp.errors import InputError
from cloakgp.files import atomic
from cloakgp.kernels.words import parse
from cloakgp.model.hyperprior import Hyperprior
from cloakgp.model.outcome import CHANCES, CLASSES, COUNT, REAL, YES_NO, as_outcome
from cloakgp.plans.predictions import Plan
from cloakgp.plans.staged import StagedPlan
from cloakgp.plans.whole_rows import RowsPlan
from cloakgp.plots import inducing_words
from cloakgp.plots.labels import outcome_of
from cloakgp.rows.formats import Format, is_parquet
from cloakgp.rows.people import as_ids
from cloakgp.workflow import boxes, pictures, points, tables, words
from cloakgp.workflow.cluster import check_cluster, connected
from cloakgp.workflow.inputs import check_columns, complete_rows, open_ids, open_inputs, protected
from cloakgp.workflow.learned_settings import AnySettings, LearnedSettings
from cloakgp.workflow.outcomes import bounds_of, unit_words
from cloakgp.workflow.plan_file import plan_file
from cloakgp.workflow.protection import Protect, repeated_ids
from cloakgp.workflow.releases import first_column
from cloakgp.workflow.row_settings import RowSettings
from cloakgp.workflow.settings import Settings, check_output
from cloakgp.workflow.table_cells import find_columns, numbers_named


@command
def plan(
    data: options.Data,
    inputs: options.Inputs,
    output: options.Output,
    epsilon: options.Epsilon,
    bounds: options.BoundsOrNone = None,
    delta: options.DeltaOrNone = None,
    outcome: table_options.Outcome = table_options.OutcomeWord.real,
    classes: table_options.Classes = None,
    at: Annotated[
        str | None,
        typer.Option(
            help="Where predictions matter: grid:200 (per axis), or a file of points. If absent, points that "
            "cover the inputs; with --kernel it must be given."
        ),
    ] = None,
    kernels: Annotated[
        str | None, typer.Option(help="Families to learn among: EQ, Matern32, Matern52; EQ if absent.")
    ] = None,
    stages: Annotated[
        int | None, typer.Option(help="In how many stages to learn; by a public rule if absent.")
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(help='Instead of learning a model: its kernel, as in Python: "EQ(25, variance=660)".'),
    ] = None,
    noise: Annotated[
        float | None,
        typer.Option(
            help="With --kernel: the variance of outcomes at one input; of counts, over their rate, and 1 if "
            "absent; of yes/no and classes none."
        ),
    ] = None,
    design: Annotated[
        str | None, typer.Option(help="With --kernel: mse, posterior, max or volume; mse if absent.")
    ] = None,
    calibration: Annotated[
        str | None,
        typer.Option(help="With --kernel: analytic, or the paper's: classic; analytic if absent."),
    ] = None,
    mean: Annotated[
        float | None,
        typer.Option(
            help="With --kernel: prior mean; the middle of the bounds if absent. Of yes/no its probit, of "
            "counts the logarithm."
        ),
    ] = None,
    inducing: Annotated[
        str | None,
        typer.Option(
            help="For many rows: how many inducing inputs, such as 500, or a file of them.", metavar="N|FILE"
        ),
    ] = None,
    approximation: Annotated[
        str | None, typer.Option(help="With --kernel and --inducing: dtc or fitc; dtc if absent.")
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            help="With --kernel, without --inducing: where to compute, such as cuda. Needs PyTorch."
        ),
    ] = None,
    categories: table_options.Categories = None,
    season: table_options.Season = None,
    missing_inputs: table_options.MissingInputs = table_options.MissingInputsWord.error,
    decimal: table_options.Decimal = None,
    encoding: table_options.Encoding = None,
    dask: options.Dask = None,
    protect: Annotated[
        Protect | None,
        typer.Option(
            help="What stays private; outcomes if absent, or people with --people.", show_default=False
        ),
    ] = None,
    people: options.People = None,
    within: options.Within = None,
    ids: options.Ids = options.IdsWord.alike,
    box: private_inputs.Box = None,
    levels: private_inputs.Levels = None,
    cells: private_inputs.Cells = None,
    rows: private_inputs.Rows = None,
    max_rows: private_inputs.MaxRows = None,
    n_people: private_inputs.NPeople = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="With --kernel: a table of all designs; no plan is made.")
    ] = False,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Plan file to write (.json).")] = None,
    picture: Annotated[
        Path | None, typer.Option("--plot", help="Picture of the noise to write (.png).")
    ] = None,
    as_json: options.Json = False,
) -> Answer:
    """Plan a release: public and free. Reads the input columns only.

    Prints how much privacy noise there will be, and the certificate. Compare as many plans as you like, then
    keep one with -o and release from it. Every number given here must be public knowledge.

    The model is learned by the release itself, in stages. If it is known, --kernel and --noise set it; then
    more than some thousand rows need --inducing: inducing inputs, on which the model then stands, chosen by
    k-means or given in a file. Of yes/no, classes and counts, --kernel is of f behind probabilities or rates.

    \b
      cloakgp plan data.csv --inputs age --output height --bounds 0 250 --epsilon 1 -o plan.json
      cloakgp plan stops.csv --inputs lat,long,problem --output searched --outcome yes/no \\
          --epsilon 1 -o plan.json
      cloakgp plan data.csv --inputs age --output height --bounds 58 158 \\
          --kernel "EQ(25, variance=660)" --noise 200 --at grid:200 --epsilon 1 \\
          --design posterior --plot plan.png -o plan.json
      cloakgp plan data.csv --inputs age --output height --bounds 58 158 \\
          --kernel "EQ(25, variance=660)" --noise 200 --at grid:200 --epsilon 1 --compare
      cloakgp plan homes.parquet --inputs lat,lon --output price --bounds 0 2000000 \\
          --kernel "Matern32([0.05, 0.08], variance=9e10)" --noise 4e10 --at points.csv \\
          --epsilon 1 --delta 1e-6 -o plan.json
      cloakgp plan trips.parquet --inputs lat,lon --output minutes --bounds 0 60 \\
          --kernel "EQ([0.02, 0.03], variance=80)" --noise 100 --at grid:20 --inducing 500 \\
          --epsilon 1 --delta 1e-8 --dask tcp://10.0.0.5:8786 -o plan.json
      cloakgp plan visits.csv --inputs age,clinic,day --output pressure --bounds 60 220 \\
          --season day week,year --epsilon 3 -o plan.json
    """
    columns = options.names(inputs)
    listed = options.optional_names(categories) or []
    for_set: dict[str, Any] = {"design": design, "calibration": calibration, "mean": mean, "device": device}
    for_set |= {"approximation": approximation, "dask": dask}
    protect = _protected(protect, people, within)
    as_ids(ids.value, people is not None)
    hidden = private_inputs.PrivateInputs(box, levels, cells, rows, max_rows, n_people)
    if protect is Protect.ROWS:
        _check_for_rows(for_set)
        table_options.check_for_rows(listed, season, missing_inputs)
    else:
        hidden.check_absent()
    told = _of_outcomes(outcome, options.optional_names(classes), bounds)
    for_learned = {"kernels": kernels, "stages": stages, "season": season}
    _check_model(kernel, noise, at, told["outcome"], for_set, for_learned)
    model = None if kernel is None else parse(kernel)
    check_output(columns, output, people)
    options.check_writable(out, picture, reads=[data, *(file for file in (at, inducing) if file)])
    check_cluster(dask, inducing is not None)
    check_columns(data, columns, output, dask is not None, people)
    if inducing is None and approximation not in (None, "dtc"):
        raise InputError(f"--approximation {approximation} needs --inducing.")
    public = [] if protect is Protect.ROWS else columns
    form = None if data.is_dir() or is_parquet(data) else tables.reading(data, public, decimal, encoding)
    known = None
    if protect is not Protect.ROWS:
        plain = dask is not None  # whose workers read numbers
        known = numbers_named(columns, output, people) if plain else None
        known = known or find_columns(data, columns, output, people, listed, form)
    asked: dict[str, Any] = {
        "output": output,
        "epsilon": epsilon,
        "inducing": points.inducing_inputs(inducing, columns, known),
        "people": people,
        "ids": ids.value,
        "reading": None if form == Format() else form,
    }
    if model is None:
        asked |= {"stages": stages}
        asked |= {} if season is None else {"seasons": table_options.seasons(season)}
        asked |= {} if kernels is None else {"kernels": tuple(options.names(kernels))}
    else:
        asked |= {name: value for name, value in for_set.items() if value is not None and name != "dask"}
        asked |= {"kernel": model, "noise": noise}
    settings: AnySettings
    X = whose = None
    if protect is Protect.ROWS:
        size = hidden.size(data, people, ids.value)
        asked |= told | {"delta": _delta(delta, size, "rows" if people is None else "people")}
        settings = _row_settings(asked, hidden, size, columns, at)
    else:
        with working("reading the inputs"):
            streams = model is None or inducing is not None
            X = open_inputs(data, columns, streams, dask is not None, known, form, missing_inputs.value)
            whose = open_ids(data, people, form, ids.value)
        counted = protected(X, whose, missing_inputs.value)
        asked |= {"delta": _delta(delta, counted, "rows" if people is None else "people")}
        asked |= told
        asked["inputs"] = tuple(columns)
        asked |= {"columns": known, "missing_inputs": missing_inputs.value}
        asked["at"] = at if at is None or points.is_grid(at) else points.from_file(at, columns, columns=known)
        asked |= {} if within is None else {"within": within}
        settings = LearnedSettings(**asked) if model is None else Settings(**asked)
    if compare:
        assert _check_compare(settings, design, out, picture)
        with connected(dask), working("comparing designs"):
            compared = settings.compare(X, whose)
        lines = "\n".join([table(compared.lines()), *compared.notes])
        return Answer({"designs": compared.table(), "best": compared.best}, lines)
    if picture is not None:
        pictures.check_path(picture)
    if isinstance(settings, Settings) and settings.inducing is None and settings.device is None:
        _note_many(complete_rows(X, whose, missing_inputs.value)[0])
    with connected(dask), working("planning"):
        made = settings.plan() if isinstance(settings, RowSettings) else settings.plan(X, whose)
        file = plan_file(settings, made)
        drawn = None if picture is None else pictures.png(pictures.noise_picture(made, columns, output))
    if protect is Protect.OUTCOMES:
        _note_people(data, columns, output)
    if form is not None and decimal is None:
        table_options.note_decimal(form, made, protect is Protect.ROWS)
    if out is not None:
        atomic.write(out, file.encode())
    if picture is not None and drawn is not None:
        atomic.write(picture, drawn)
    found = {
        "expected_error": words.noise_summary(made.expected_error, bounds_of(made)),
        "noise_std": words.noise_summary(made.noise_std, bounds_of(made)),
        "test_points": len(made.X_star),
        "rows": settings.size if isinstance(settings, RowSettings) else len(made.X),
        "certificate": made.certificate.to_dict(),
        "unit": made.unit,
        "plan_sha256": made.digest,
        "inputs_sha256": file.inputs or None,
        "plan_file": None if out is None else str(out),
        "picture": None if picture is None else str(picture),
    }
    return Answer(found, _text(made, columns, output, out, picture))


def _of_outcomes(
    outcome: table_options.OutcomeWord,
    classes: list[str] | None,
    bounds: tuple[float, float] | None,
) -> dict[str, Any]:
    """What outcomes are, as settings have it, if the options that say so go together."""
    asked, _ = as_outcome(outcome.value, classes)
    if bounds is None and asked not in CHANCES:
        raise InputError(
            "--bounds LO HI must be given: where outcomes are publicly known to lie, however generous. "
            "Outcomes that are yes or no go without: --outcome yes/no."
        )
    return {"bounds": bounds, "outcome": asked, "classes": tuple(classes or ())}


def _check_compare(
    settings: AnySettings, design: str | None, out: Path | None, picture: Path | None
) -> TypeGuard[Settings]:
    """Raise if designs cannot be compared, or a plan is asked for as well."""
    if not isinstance(settings, Settings):
        raise InputError(
            "--compare is for a model that is set: give --kernel and --noise. A model that is learned has a "
            "design of its own for each stage."
        )
    if settings.in_stages:
        raise InputError(
            "--compare is for real outcomes: others are released for their denoised predictions, with one "
            "design. Leave it out."
        )
    named = {"--design": design, "--out": out, "--plot": picture}
    for name, given in named.items():
        if given is not None:
            raise InputError(f"--compare makes no plan: leave out {name}, and choose a design by its table.")
    return True


def _delta(given: float | None, size: int, counted: str) -> float:
    """As given, or the default for so many rows or people, which is said."""
    if given is not None:
        return given
    delta = default_delta(size)
    note(f"delta is {delta:g}: the largest power of ten below 1/(10 N), for N = {size} {counted}.")
    return delta


def _row_settings(
    asked: dict[str, Any], hidden: private_inputs.PrivateInputs, size: int, inputs: list[str], at: str | None
) -> RowSettings:
    """Settings that know nothing of the table but its name and how many rows it has."""
    grid = hidden.grid(inputs)
    where = at if at is None or points.is_grid(at) else boxes.from_file(at, grid, points.MOST_POINTS)
    return RowSettings(**asked, grid=grid, size=size, max_rows=hidden.max_rows, at=where)


def _check_for_rows(for_set: dict[str, Any]) -> None:
    for name in ("design", "calibration", "device", "approximation", "dask"):
        if for_set[name] is not None:
            raise InputError(
                f"--{name} is for public inputs. Whole rows are released in stages, on this machine: leave "
                "it out."
            )


def _protected(protect: Protect | None, people: str | None, within: float | None) -> Protect:
    """Who is protected, if the options that say so go together."""
    if protect is None:
        protect = Protect.OUTCOMES if people is None else Protect.PEOPLE
    if protect is Protect.PEOPLE and people is None:
        raise InputError("--protect people needs --people COLUMN: the column that says whose row each is.")
    if protect is Protect.OUTCOMES and people is not None:
        raise InputError(
            "--protect outcomes is about each row, and --people about each person. Leave out one of them."
        )
    if within is not None and (people is None or protect is Protect.ROWS):
        raise InputError(
            "--within is how outcomes of one person go together: it needs --people COLUMN, and public inputs."
        )
    return protect


def _note_many(X: Any) -> None:
    """Say what an exact model of many rows takes, and what takes less; before it starts."""
    rows = len(np.unique(X, axis=0))
    if rows <= _MANY:
        return
    minutes = rows**3 / _SPEED / 60
    note(
        f"note: an exact model of {rows} distinct rows takes {3 * 8 * rows**2 / 2**30:.1f} GiB of memory or "
        f"more, and {math.ceil(minutes)} minute(s) or more on one core; Ctrl-C stops it, for nothing. "
        "--inducing 500 takes far less of both, and so does a model that is learned, without --kernel."
    )


_MANY = 5000
_SPEED = 1e10  # of the cube of the rows, in a second, roughly


def _note_people(data: Path, inputs: list[str], output: str) -> None:
    """Say so where a table seems to hold several rows of one person, and each row is protected by itself."""
    if data.is_dir():
        return
    others = [name for name in tables.columns_of(data) if name != output]
    found = repeated_ids(data, others)
    if found is not None:
        note(
            f"note: each row's outcome is protected by itself, and {found!r} looks like people who have "
            f"several rows. To protect each person with all of their rows: --people {shlex.quote(found)}."
        )


def _check_model(
    kernel: str | None,
    noise: float | None,
    at: str | None,
    outcome: str,
    for_set: dict[str, Any],
    for_learned: dict[str, Any],
) -> None:
    """Raise, with what to do, if options do not go together: some are for a model that is set, or learned."""
    learn = "or leave both out, and the model is learned"
    if noise is not None and kernel is None:
        raise InputError(f'--noise needs --kernel, such as --kernel "EQ(25, variance=660)"; {learn}.')
    if noise is not None and outcome in CHANCES:
        raise InputError("--noise: how outcomes scatter follows from their probability. Leave it out.")
    if kernel is not None and noise is None and outcome == REAL:
        raise InputError(f"--kernel needs --noise, the variance of outcomes at one input; {learn}.")
    if kernel is not None and outcome != REAL:
        _check_linked(outcome, for_set)
    if kernel is not None and at is None:
        raise InputError("--kernel needs --at: where predictions are wanted, such as --at grid:200.")
    if kernel is None:
        for name, given in for_set.items():
            if given is not None:
                raise InputError(
                    f"--{name} needs --kernel and --noise. A model that is learned does without it: "
                    f"{_WHY[name]}. Leave it out, or set the model."
                )
        return
    for name, given in for_learned.items():
        if given is not None:
            raise InputError(
                f"--{name} is for a model that is learned, and --kernel sets it. Leave out one of them."
            )


def _check_linked(outcome: str, for_set: dict[str, Any]) -> None:
    """Raise for what only a plan of real outcomes has a choice of."""
    for name in ("design", "calibration", "device", "approximation", "dask"):
        if for_set[name] is not None:
            raise InputError(
                f"--{name} is for real outcomes, and these are {_NAMED[outcome]}: there is one way to "
                "release them, on this machine. Leave it out."
            )


_NAMED = {YES_NO: "yes or no", COUNT: "counts", CLASSES: "one of several classes"}
_WHY = {
    "design": "each stage has one of its own, for what came out before",
    "calibration": "its calibration is analytic",
    "mean": "the level of outcomes is learned, too",
    "device": "it is worked out on this machine's processor",
    "approximation": "it has one of its own",
    "dask": "it is worked out on this machine",
}


def _text(
    plan: Plan | StagedPlan, inputs: list[str], output: str, out: Path | None, picture: Path | None
) -> str:
    parts = [noise_text(plan, inputs, output), "", str(plan.certificate), ""]
    if out is None:
        parts.append("Nothing was written. With -o plan.json this plan can be released.")
    else:
        unread = f"{output!r} was not read"
        if isinstance(plan, RowsPlan):
            unread = "no input or output column was read"
        parts.append(f"plan file: {out}. Nothing was spent, and {unread}.")
    if picture is not None:
        parts.append(f"picture: {picture}")
    return "\n".join(parts)


def _point(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def noise_text(plan: Plan | StagedPlan, inputs: list[str], output: str) -> str:
    """How much noise, in all and at some of the test points."""
    summary = words.noise_summary(plan.noise_std, bounds_of(plan))
    model = None if isinstance(plan, StagedPlan) else inducing_words(plan.gp)
    errors = words.noise_lines(words.noise_summary(plan.expected_error, bounds_of(plan)))
    rows = [
        [
            unit_words(outcome_of(plan), output),
            "expected error",
            "std of the privacy noise",
            "of the bounds' width",
        ]
    ]
    each = zip(errors, words.noise_lines(summary), strict=True)
    rows += [[name, error, noise, share] for (name, error, _), (_, noise, share) in each]
    through = "" if model is None else f" through {model}"
    text = f"Over {len(plan.X_star)} test points, from {words.population(plan)}{through}:\n{table(rows)}"
    text += "\nThe expected error is of the predictions that readers use: privacy noise and model together."
    if len(inputs) == 1 and len(plan.X_star) > 1:
        picked = sorted({round(i * (len(plan.X_star) - 1) / 6) for i in range(7)})
        order = plan.X_star[:, 0].argsort(kind="stable")[picked]
        shown = [_point(value) for value in first_column(plan)]
        some = [[inputs[0], "expected error", "noise std", "GP's own std"]]
        numbers = (plan.expected_error, plan.noise_std, plan.gp_std)
        some += [[shown[i], *(f"{one[i]:.4g}" for one in numbers)] for i in order]
        text += f"\n\n{table(some)}"
    forecast = _forecast(plan) if isinstance(plan, StagedPlan) else ""
    return f"{text}\n\n{forecast}" if forecast else text


def _forecast(plan: StagedPlan) -> str:
    """What the numbers of a plan in stages do not know yet."""
    chances, learns = outcome_of(plan) in CHANCES, isinstance(plan.rule.prior, Hyperprior)
    if chances:
        text = "This is a careful forecast, with nothing known of the probabilities. "
        text += f"In {plan.stages} stages the release learns the model,\nand where" if learns else "Where"
        text += " probabilities are far from 1/2 there will be less noise."
    elif learns:
        text = (
            "This is a forecast, with nothing known but bounds: the median over what might be true. "
            f"In {plan.stages}\nstages the release learns where outcomes lie and how they scatter: the "
            "less, the less noise there will be."
        )
    else:
        text = "This is a forecast by the model alone: nothing is known of the outcomes."
    if isinstance(plan, RowsPlan):
        text += (
            "\nRows are taken to be spread evenly over the box: where they are few, there will be more noise."
        )
    return text
