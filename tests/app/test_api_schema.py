"""Requests made up from the API's description: none fails the server, and every answer is as described."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from app_helpers import LOOSE, SETTINGS, World, make_plan, make_world, release
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from cloakgp.app import State, create_app

schemathesis = pytest.importorskip("schemathesis")

EXAMPLES = 8


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, dict[str, str], dict[str, str]]:
    """The description of a server with a plan and a release, a custodian's headers, and what is there."""
    path = Path(tmp_path_factory.mktemp("schema")) / "data"
    world = make_world(path)
    plan = make_plan(world.client(), epsilon=0.2)
    made = release(world.client(), plan).json()["release"]["id"]
    app = create_app(State(path, limits=LOOSE, any_host=True))
    headers = {"Authorization": f"Bearer {world.tokens['custodian']}"}
    there = {"plan_id": plan, "release_id": made, "name": "heights.csv"}
    return schemathesis.openapi.from_asgi("/api/openapi.json", app), headers, there


def operations(schema: Any) -> list[Any]:
    return [found.ok() for found in schema.get_all_operations()]


def checks() -> list[Any]:
    kept = {
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_headers_conformance",
        "response_schema_conformance",
    }
    return [check for check in schemathesis.checks.CHECKS.get_all() if check.__name__ in kept]


def test_answers_are_as_described_for_made_up_requests(api):
    schema, headers, there = api
    chosen = checks()
    assert len(chosen) == 5
    found = operations(schema)
    assert len(found) > 25
    for operation in found:

        @seed(1)
        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.explicit, Phase.generate],
        )
        @given(case=operation.as_strategy(), real=st.booleans())
        def ask(case: Any, real: bool) -> None:
            if real and case.method != "DELETE":  # something that is there, and not only what is not
                case.path_parameters = {key: there.get(key, old) for key, old in case.path_parameters.items()}
            case.call_and_validate(headers=headers, checks=chosen)

        ask()


def numbers(*ordinary: float) -> st.SearchStrategy[float]:
    """Ordinary numbers, and such as break formulas."""
    return st.sampled_from(
        [*ordinary, 0.0, 1e-300, 1e-12, 1e-4, 0.5, 1e3, 1e12, 1e15, -1.0, -1e15, 1e30, -1e30, 1e31]
    )


KERNELS = [
    "EQ(20, variance=625)",
    "EQ(1e-9)",
    "EQ(1e300)",
    "Matern12(3, variance=1e12)",
    "Periodic(1e-5, 2)",
    "Linear(1e15)",
    "Polynomial(degree=9)",
    "Constant(1e-300)",
    "Constant(1e300) * EQ(1)",
    "RationalQuadratic(1e-8, alpha=1e-8)",
    "EQ([1, 2])",
    "EQ(0)",
    "Integral(EQ(1))",
    "EQ(5) + Linear(1) * Constant(3)",
]


@seed(2)
@settings(max_examples=150, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(
    changes=st.fixed_dictionaries(
        {},
        optional={
            "kernel": st.sampled_from(KERNELS),
            "noise": st.sampled_from([200.0, 1e-300, 1e-12, 1e-3, 1e9, 1e15, 1e30, 0.0]),
            "bounds": st.tuples(numbers(50.0), numbers(170.0)).map(sorted),
            "mean": st.none() | numbers(100.0),
            "epsilon": st.sampled_from([1e-4, 0.01, 1.0, 30.0, 100.0, 0.0]),
            "delta": st.sampled_from([1e-12, 1e-6, 0.01, 0.5, 1.0]),
            "at": st.sampled_from(["grid:2", "grid:30", "grid:0", "grid:9999"])
            | st.lists(st.lists(numbers(3.0), min_size=1, max_size=2), max_size=5).map(
                lambda p: {"points": p}
            ),
            "design": st.sampled_from(["mse", "max", "posterior", "volume"]),
            "kind": st.sampled_from(["predictions", "function"]),
        },
    )
)
def test_no_settings_fail_the_server(released: tuple[World, str, str], changes: dict[str, Any]) -> None:
    """Whatever the numbers, there is a preview, or a sentence that says what is wrong with them."""
    answer = released[0].client().post("/api/preview", json={**SETTINGS, **changes})
    assert answer.status_code in (200, 422), answer.text
    if answer.status_code == 422:
        assert answer.json()["code"] == "bad_input"


@seed(3)
@settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(points=st.lists(numbers(3.0), min_size=1, max_size=5), level=numbers(0.95), noise=st.booleans())
def test_no_query_fails_the_server(
    released: tuple[World, str, str], points: list[float], level: float, noise: bool
) -> None:
    world, _, release_id = released
    asked = {"points": [[x] for x in points], "level": level, "include_noise": noise}
    answer = world.client("analyst").post(f"/api/releases/{release_id}/predict", json=asked)
    assert answer.status_code in (200, 422), answer.text
