"""Import paths that the documentation once named: kept."""

import cloakgp
from cloakgp import charging, denoise, ledger


def test_old_paths_lead_to_the_same_things():
    assert (charging.Account, charging.Receipt) == (ledger.Account, ledger.Receipt)
    assert (denoise.Posterior, denoise.Uncertainty) == (cloakgp.Posterior, cloakgp.Uncertainty)
