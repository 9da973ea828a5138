"""An audit of every mechanism that reads y, by a tool that is not ours: `make audit`, `docs/audit.md`.

Many real releases are drawn of two data sets that differ in one outcome. Whoever can tell from which of
the two a release came, more often than (epsilon, delta) allows, has shown the promise to be broken.
The counting and the confidence are jax-privacy's. What is drawn, and from what, is here:

- ``mechanisms.py``: a public plan for each mechanism, and its worst pair of neighbours. A new one goes there.
- ``attack.py``: the noise halved or taken away, the best score for telling neighbours apart, the draws.
- ``__main__.py``: the auditor, and the table.
"""
