"""Opacus: ε of three accountants for the same steps."""

import warnings

from opacus.accountants import GaussianAccountant, PRVAccountant, RDPAccountant

warnings.filterwarnings("ignore")
for steps in (1, 20):
    for kind in (GaussianAccountant, PRVAccountant, RDPAccountant):
        accountant = kind()
        for _ in range(steps):
            accountant.step(noise_multiplier=0.8, sample_rate=0.1)
        print(
            f"{steps} steps, {kind.__name__}: ε = {accountant.get_epsilon(1e-3):.3f} at δ = 0.001"
        )
