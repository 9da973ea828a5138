"""What is measured, in integers: all of it public, and what the noise is scaled to.

A measurement is columns x statistic x unit x noise, or scores of candidates. Each can check its own
promise from its integers, and does so again in the private room. A certificate says what is promised.
"""
