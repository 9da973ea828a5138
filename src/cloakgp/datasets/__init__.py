"""Loaders of public data and generated look-alikes; the extra ``datasets`` is for downloads.

``fetch_*`` load real data: from a file or folder given as `path`, else from the folder that the
environment variable ``CLOAKGP_DATA`` names, else from the publisher, once, into a cache with checksums.
``make_*`` generate look-alikes from formulas with a public seed.
"""

from cloakgp.datasets.dataset import Dataset as Dataset
from cloakgp.datasets.dataset import DatasetError as DatasetError
from cloakgp.datasets.generated import make_bike_like as make_bike_like
from cloakgp.datasets.generated import make_city_like as make_city_like
from cloakgp.datasets.generated import make_kung_like as make_kung_like
from cloakgp.datasets.published import CITIBIKE_BOX as CITIBIKE_BOX
from cloakgp.datasets.published import LONDON_BOX as LONDON_BOX
from cloakgp.datasets.published import fetch_citibike as fetch_citibike
from cloakgp.datasets.published import fetch_kung as fetch_kung
from cloakgp.datasets.published import fetch_london_prices as fetch_london_prices
