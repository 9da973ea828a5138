"""Plans and their releases, side by side: a plan is public, a release is private, a prediction is free.

Each kind of plan has its release in the same file. What makes plans (the planners) comes after, and is what
:class:`cloakgp.GP` opens its two doors to.
"""
