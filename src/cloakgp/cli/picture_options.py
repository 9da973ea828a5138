"""Options about pictures and reports: words for them, and what a map is made of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from cloakgp.cli import options
from cloakgp.cli.exits import Answer
from cloakgp.errors import InputError
from cloakgp.files import atomic
from cloakgp.workflow import pictures

Title = Annotated[str | None, typer.Option(help="Title, for pictures and reports.")]
Units = Annotated[str | None, typer.Option(help="Unit of the outcomes: cm, or £ for £420k.")]
Source = Annotated[str | None, typer.Option(help="Where the data are from, for pictures and reports.")]
Date = Annotated[str | None, typer.Option(help="Of when the data are, for pictures and reports.")]
Coordinates = Annotated[
    str | None,
    typer.Option(
        help="Inputs of a map, across and up: lon,lat. By their names if absent.", metavar="COLUMNS"
    ),
]
Geographic = Annotated[
    bool | None,
    typer.Option(
        "--geographic",
        help="A map's inputs are longitude and latitude in degrees, whatever their names.",
        show_default=False,
    ),
]
Outline = Annotated[Path | None, typer.Option(help="GeoJSON file with borders, for a map.", metavar="FILE")]


def write_pictures(shown: Iterator[pictures.Picture], out: Path, stem: str, formats: str | None) -> Answer:
    """Write the first picture under the name given; or all into a folder, named by the release."""
    if not out.is_dir():
        if formats is not None:
            raise InputError("--formats is for a folder: name one with -o, or end the file's name in .svg.")
        first = next(shown)
        atomic.write(out, first.encoded(pictures.kind_of(out)))
        return Answer({"picture": str(out), "caption": first.caption}, f"picture: {out}\n{first.caption}")
    kinds = ["png"] if formats is None else options.names(formats)
    for kind in kinds:
        if kind not in pictures.FORMATS:
            raise InputError(f"--formats must be of {', '.join(pictures.FORMATS)}; got {kind!r}.")
    found, lines = [], []
    for picture in shown:
        for kind in kinds:
            if kind == "csv" and picture.numbers is None:
                continue
            path = out / f"{stem}-{picture.name}.{kind}"
            atomic.write(path, picture.encoded(kind))
            found.append({"picture": str(path), "caption": picture.caption})
        lines.append(f"{picture.name}: {picture.caption}")
    return Answer({"pictures": found}, "\n".join([f"{len(found)} files in {out}", *lines]))
