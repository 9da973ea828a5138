"""From a table in a file to a release and a report: what the command line and the app have in common.

Here is everything that is public about it: reading input columns, test points, plan files, pictures,
reports. The output column is named here but never read: a ``PrivateColumn`` of :mod:`cloakgp.private`
reads it, when ``measure`` asks for it. Extra ``cli`` (pyarrow).
"""
