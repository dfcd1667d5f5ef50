"""Opacus: steps of an epoch, rate and divisor for numbers of examples that differ by one."""

import torch
from opacus import PrivacyEngine

for examples in (4, 5, 6):
    model = torch.nn.Linear(1, 1, bias=False)
    data = torch.utils.data.TensorDataset(torch.zeros(examples, 1))
    _, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
        data_loader=torch.utils.data.DataLoader(data, batch_size=2),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )
    print(
        f"{examples} examples: {len(loader)} steps, rate {loader.sample_rate:.3f}, "
        f"divisor {optimizer.expected_batch_size}"
    )
