"""``python -m cloakgp.cli`` is the same as ``cloakgp``."""

from cloakgp.cli import main

if __name__ == "__main__":
    main()
