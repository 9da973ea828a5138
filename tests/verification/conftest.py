"""Files of learned models, made and replayed; those that were made before have all of their models."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def learned_among_few(request: pytest.FixtureRequest) -> None:
    if not request.module.__name__.startswith("test_older"):
        request.getfixturevalue("few_models")
