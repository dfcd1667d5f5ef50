"""Opacus: how many steps on a batch of one and of two examples have bits below 2**-26."""

from fractions import Fraction

import torch
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer

module = GradSampleModule(torch.nn.Linear(1, 1, bias=False))
plain = torch.optim.SGD(module.parameters(), lr=1.0)
optimizer = DPOptimizer(plain, noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=1)
(weight,) = module.parameters()
for examples in (0.0, 1.0):
    fine = 0
    for _ in range(2_000):
        with torch.no_grad():
            weight.zero_()
        optimizer.zero_grad()
        module(torch.tensor([[examples]])).sum().backward()
        optimizer.step()
        fine += Fraction(float(weight.detach()[0, 0])).denominator > 2**26
    print(f"gradient {examples}: {fine} of 2000")
