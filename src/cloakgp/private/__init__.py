"""THE PRIVATE ROOM: whoever asks where y could leak reads these three files.

:mod:`~cloakgp.private.room` is the one path that y takes, and its ``__all__`` lists the doors that the rest
of the library may use. :mod:`~cloakgp.private.outcomes` is how y is read: nothing outside of this folder
imports it. :mod:`~cloakgp.private.noise` is OpenDP.
"""
