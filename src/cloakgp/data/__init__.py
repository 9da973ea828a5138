"""Where rows are, and passes over them.

X and y have a row for each person. A source is anything with a length and slices of rows: an array, a memory
map, Parquet files, a Dask array. Nothing here knows what the rows are about: :mod:`cloakgp.data.passes`
hands them in chunks to whoever asks, in threads or on a cluster, and :mod:`cloakgp.data.merging` finds those
that are equal.
"""
