"""THE PRIVATE ROOM: whoever asks where y could leak reads these four files.

:mod:`~cloakgp.private.room` is the one path that y takes, and its ``__all__`` lists the doors that the rest
of the library may use. :mod:`~cloakgp.private.outcomes` is how y is read, :mod:`~cloakgp.private.rows`
how inputs are, where they are private, too: nothing outside of this folder imports them.
:mod:`~cloakgp.private.noise` is OpenDP.
"""
