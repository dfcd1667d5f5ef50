"""Opacus: one step with and without an example whose gradient is infinite."""

import torch
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer

module = GradSampleModule(torch.nn.Linear(1, 1, bias=False))
plain = torch.optim.SGD(module.parameters(), lr=1.0)
optimizer = DPOptimizer(plain, noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=1)
(weight,) = module.parameters()
for batch in ([1.0], [1.0, float("inf")]):
    nan = 0
    for _ in range(200):
        with torch.no_grad():
            weight.zero_()
        optimizer.zero_grad()
        module(torch.tensor(batch).reshape(-1, 1)).sum().backward()
        optimizer.step()
        nan += bool(weight.isnan().any())
    print(f"batch {batch}: NaN in {nan} of 200")
