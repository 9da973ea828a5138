"""``cloakgp plan``: how much noise a release will have, without a look at the output column."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cloakgp.cli import options
from cloakgp.cli.exits import Answer, command, table, working
from cloakgp.errors import InputError
from cloakgp.files import atomic
from cloakgp.kernels.words import parse
from cloakgp.plans.predictions import Plan
from cloakgp.plots import inducing_words
from cloakgp.workflow import pictures, points, words
from cloakgp.workflow.cluster import check_cluster, connected
from cloakgp.workflow.inputs import check_columns, open_inputs
from cloakgp.workflow.plan_file import PlanFile, beside
from cloakgp.workflow.settings import Settings, check_output


@command
def plan(
    data: options.Data,
    inputs: options.Inputs,
    output: options.Output,
    bounds: options.Bounds,
    kernel: Annotated[
        str, typer.Option(help='Written as in Python: "EQ(25, variance=660)".', show_default=False)
    ],
    noise: Annotated[float, typer.Option(help="Variance of outcomes at one input.", show_default=False)],
    at: Annotated[
        str,
        typer.Option(
            help="Where predictions are wanted: grid:200 (per axis), or a file of points.", show_default=False
        ),
    ],
    epsilon: options.Epsilon,
    delta: options.Delta,
    design: Annotated[str, typer.Option(help="mse, posterior, max or volume.")] = "mse",
    calibration: Annotated[str, typer.Option(help="analytic, or the paper's: classic.")] = "analytic",
    mean: options.Mean = None,
    inducing: Annotated[
        str | None,
        typer.Option(
            help="For many rows: how many inducing inputs, such as 500, or a file of them.", metavar="N|FILE"
        ),
    ] = None,
    approximation: Annotated[str, typer.Option(help="With --inducing: dtc or fitc.")] = "dtc",
    device: Annotated[
        str | None, typer.Option(help="Without --inducing: where to compute, such as cuda. Needs PyTorch.")
    ] = None,
    dask: options.Dask = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Plan file to write (.json).")] = None,
    picture: Annotated[
        Path | None, typer.Option("--plot", help="Picture of the noise to write (.png).")
    ] = None,
    as_json: options.Json = False,
) -> Answer:
    """Plan a release: public and free. Reads the input columns only.

    Prints how much privacy noise there will be, and the certificate. Compare as many plans as you like, then
    keep one with -o and release from it. Every number given here must be public knowledge.

    More than some thousand rows need --inducing: inducing inputs, on which the model then stands, chosen
    by k-means or given in a file.

    \b
      cloakgp plan data.csv --inputs age --output height --bounds 58 158 \\
          --kernel "EQ(25, variance=660)" --noise 200 --at grid:200 --epsilon 1 --delta 0.01 \\
          --design posterior --plot plan.png -o plan.json
      cloakgp plan homes.parquet --inputs lat,lon --output price --bounds 0 2000000 \\
          --kernel "Matern32([0.05, 0.08], variance=9e10)" --noise 4e10 --at points.csv \\
          --epsilon 1 --delta 1e-5 -o plan.json
      cloakgp plan trips.parquet --inputs lat,lon --output minutes --bounds 0 60 \\
          --kernel "EQ([0.02, 0.03], variance=80)" --noise 100 --at grid:20 --inducing 500 \\
          --epsilon 1 --delta 1e-8 --dask tcp://10.0.0.5:8786 -o plan.json
    """
    columns = options.names(inputs)
    model = parse(kernel)
    check_output(columns, output)
    kept = None if out is None else beside(out)
    options.check_writable(out, kept, picture, reads=[data, at, *([] if inducing is None else [inducing])])
    check_cluster(dask, inducing is not None)
    check_columns(data, columns, output, dask is not None)
    where = at if points.is_grid(at) else points.from_file(at, columns)
    if inducing is None and approximation != "dtc":
        raise InputError(f"--approximation {approximation} needs --inducing.")
    settings = Settings(
        inputs=tuple(columns),
        output=output,
        bounds=bounds,
        kernel=model,
        noise=noise,
        mean=mean,
        at=where,
        epsilon=epsilon,
        delta=delta,
        design=design,
        calibration=calibration,
        inducing=points.inducing_inputs(inducing, columns),
        approximation=approximation,
        device=device,
    )
    if picture is not None:
        pictures.check_path(picture)
    with connected(dask), working("planning"):
        made = settings.plan(open_inputs(data, columns, inducing is not None, dask is not None))
        file = PlanFile.of(settings, made)
        drawn = None if picture is None else pictures.png(pictures.plan_picture(made, columns, output))
    if out is not None:
        file.write(out, made)
    if picture is not None and drawn is not None:
        atomic.write(picture, drawn)
    found = {
        "noise_std": words.noise_summary(made.noise_std, made.gp.limits),
        "test_points": len(made.X_star),
        "rows": file.rows,
        "certificate": made.certificate.to_dict(),
        "plan_sha256": file.plan_sha256,
        "inputs_sha256": file.inputs_sha256,
        "plan_file": None if out is None else str(out),
        "picture": None if picture is None else str(picture),
    }
    return Answer(found, _text(made, columns, output, out, picture))


def _text(plan: Plan, inputs: list[str], output: str, out: Path | None, picture: Path | None) -> str:
    parts = [noise_text(plan, inputs, output), "", str(plan.certificate), ""]
    if out is None:
        parts.append("Nothing was written. With -o plan.json this plan can be released.")
    else:
        parts.append(f"plan file: {out}. Nothing was spent, and {output!r} was not read.")
    if picture is not None:
        parts.append(f"picture: {picture}")
    return "\n".join(parts)


def noise_text(plan: Plan, inputs: list[str], output: str) -> str:
    """How much noise, in all and at some of the test points."""
    summary, model = words.noise_summary(plan.noise_std, plan.gp.limits), inducing_words(plan.gp)
    rows = [["std of the privacy noise", f"in {output}'s unit", "of the bounds' width"]]
    rows += [list(line) for line in words.noise_lines(summary)]
    through = "" if model is None else f" through {model}"
    text = (
        f"Over {len(plan.X_star)} test points, from {plan.certificate.n_rows} rows{through}:\n{table(rows)}"
    )
    if len(inputs) == 1 and len(plan.X_star) > 1:
        picked = sorted({round(i * (len(plan.X_star) - 1) / 6) for i in range(7)})
        order = plan.X_star[:, 0].argsort(kind="stable")[picked]
        some = [[inputs[0], "noise std", "GP's own std"]]
        some += [
            [f"{plan.X_star[i, 0]:.5g}", f"{plan.noise_std[i]:.4g}", f"{plan.gp_std[i]:.4g}"] for i in order
        ]
        text += f"\n\n{table(some)}"
    return text
