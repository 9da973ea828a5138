"""Heights of !Kung San women by age: the paper's first example."""

from __future__ import annotations

from cloakgp.datasets.dataset import Dataset, DatasetError
from cloakgp.datasets.sources import PathLike, download, local
from cloakgp.datasets.tables import numbers

COMMIT = "ac1b3b2cda83f3e14096e2d997a6e30ad109eeee"
URL = f"https://raw.githubusercontent.com/rmcelreath/rethinking/{COMMIT}/data/Howell1.csv"
SHA256 = "768d2fb53d44490b35260903f58955548b26f587e7afaf4e00b2603715279bbd"
LICENCE = (
    "Census by N. Howell (https://tspace.library.utoronto.ca/handle/1807/10395), as distributed in the R "
    "package rethinking by R. McElreath, whose licence is GPL (>= 3); no licence is stated for the data "
    "alone. Cite both."
)


def fetch_kung(path: PathLike | None = None) -> Dataset:
    """Heights and ages of the 287 girls and women in Howell's census of the Dobe !Kung.

    Parameters
    ----------
    path : path, optional
        ``Howell1.csv``, or a folder that holds it. By default the folder in the environment variable
        ``CLOAKGP_DATA``, else a download (12 kB) whose checksum is known.

    Returns
    -------
    Dataset
        `X`, (287, 1), ages in years; `y`, (287,), heights in cm. Real people: every row of the
        file that is not male.
    """
    file = local(path, ["Howell1.csv", "Howell1.csv.gz"]) or download(URL, "Howell1.csv", SHA256)
    table = numbers(file, [["age"], ["height"], ["male"]])
    women = table[table[:, 2] == 0]
    if not len(women):
        raise DatasetError(f"{file} holds no women: no row has 0 in the column 'male'.")
    return Dataset(
        women[:, :1].copy(),
        women[:, 1].copy(),
        ("age", "height"),
        ("years", "cm"),
        f"!Kung women, Howell's census, {file.name}",
        LICENCE,
    )
