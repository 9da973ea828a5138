"""The release file: its outside (a canonical zip), its schema, signatures, and writing it whole.

It knows arrays and words, not plans: :mod:`cloakgp.release.encoding` says how a plan becomes these, so that a
reader of files need not know how plans are made.
"""
