"""Help comes at once: no command is loaded for it, and nothing that they need."""

import subprocess
import sys

import pytest
from cli_helpers import commands

import cloakgp
from cloakgp.cli.app import COMMANDS

HEAVY = "{'numpy', 'scipy', 'opendp', 'pyarrow', 'sklearn', 'sqlalchemy', 'matplotlib'}"


@pytest.mark.parametrize(
    "code", ["import cloakgp", "from cloakgp.cli.app import app; app(['--help'], standalone_mode=False)"]
)
def test_nothing_heavy_is_loaded(code):
    assert loaded_by(code, HEAVY) == "[]"


def test_predict_loads_nothing_that_it_may_not_need():
    others = "{'scipy.special', 'scipy.spatial', 'scipy.stats', 'pandas', 'cloakgp.plots'}"
    assert loaded_by("from cloakgp import AutoGP, GP; import cloakgp.cli.predicting", others) == "[]"


@pytest.mark.parametrize(
    "others",
    ["{'sklearn', 'narwhals', 'matplotlib'}", pytest.param("{'torch'}", marks=pytest.mark.torch)],
)
def test_a_release_loads_nothing_that_it_does_not_need(others):
    """Neither scikit-learn nor what reads tables, draws pictures or works on a device."""
    code = (
        "import cloakgp, cloakgp.demo, cloakgp.plots; cloakgp.kernels.as_kernel(lambda X, Z: X @ Z.T); "
        "gp = cloakgp.GP(cloakgp.kernels.EQ(1.0), 1.0, (0.0, 1.0)); "
        "plan = gp.plan([[0.0]], X_star=[[0.0]], epsilon=1.0, delta=0.1); "
        "plan.release([0.5]).predict([[1.0]])"
    )
    assert loaded_by(code, others) == "[]"


def loaded_by(code: str, modules: str) -> str:
    """Which of these modules some code loads."""
    asked = f"import sys; {code}; print(sorted(set(sys.modules) & {modules}))"
    printed = subprocess.run([sys.executable, "-c", asked], check=True, capture_output=True, text=True).stdout
    return printed.splitlines()[-1]


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"ledger"}))
def test_the_list_of_commands_says_what_their_own_help_says(name):
    command = commands()[name]
    assert " ".join(command.help.split()).startswith(COMMANDS[name][1].removesuffix("."))


def test_every_name_is_there_when_it_is_asked_for():
    assert all(getattr(cloakgp, name) is not None for name in cloakgp.__all__)
    assert set(cloakgp.__all__) <= set(dir(cloakgp))
    assert cloakgp.core.accounting.split is not None  # a module that nobody imported
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = cloakgp.nonsense
