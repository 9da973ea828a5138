"""Loaders of public data and generated look-alikes; the extra ``datasets`` is for downloads.

``fetch_*`` load real data: from a file or folder given as `path`, else from the folder that the
environment variable ``CLOAKGP_DATA`` names, else from the publisher, once, into a cache with checksums.
``make_*`` generate look-alikes from formulas with a public seed.
"""

from cloakgp.datasets.dataset import Dataset, DatasetError
from cloakgp.datasets.generated import make_bike_like, make_city_like, make_kung_like
from cloakgp.datasets.published import (
    CITIBIKE_BOX,
    LONDON_BOX,
    fetch_citibike,
    fetch_kung,
    fetch_london_prices,
)

__all__ = [
    "CITIBIKE_BOX",
    "LONDON_BOX",
    "Dataset",
    "DatasetError",
    "fetch_citibike",
    "fetch_kung",
    "fetch_london_prices",
    "make_bike_like",
    "make_city_like",
    "make_kung_like",
]
