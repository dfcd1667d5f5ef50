"""A small neural network between the two sides, in PyTorch (an extra); on a GPU if there is one."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpassay._typing import FloatArray, IntArray


class TorchClassifier:
    """Two hidden layers, Adam, and the epoch that did best on a tenth held out."""

    def __init__(
        self,
        *,
        hidden: int = 128,
        epochs: int = 40,
        batch: int = 4096,
        rate: float = 3e-3,
        patience: int = 5,
        seed: int = 0,
    ) -> None:
        self.hidden, self.epochs, self.batch = hidden, epochs, batch
        import torch

        self.rate, self.patience, self.seed = rate, patience, seed
        self.device = "cuda" if torch.cuda.is_available() else "cpu"

    def fit(self, rows: FloatArray, labels: IntArray) -> TorchClassifier:
        """Minimise the logistic loss."""
        import torch
        from torch import nn

        torch.manual_seed(self.seed)
        order = np.random.default_rng(self.seed).permutation(len(rows))
        x = torch.as_tensor(rows[order], dtype=torch.float32, device=self.device)
        y = torch.as_tensor(labels[order], dtype=torch.float32, device=self.device)
        held = max(1, len(x) // 10)
        width = self.hidden
        self.network = nn.Sequential(
            nn.Linear(x.shape[1], width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, 1),
        ).to(self.device)
        optimiser = torch.optim.Adam(self.network.parameters(), lr=self.rate)
        steps = self.epochs * max(1, (len(x) - held) // self.batch)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, max(steps, 1))
        criterion = nn.BCEWithLogitsLoss()
        best, kept, stale = np.inf, self._state(), 0
        for _ in range(self.epochs):
            self.network.train()
            shuffled = held + torch.randperm(len(x) - held, device=self.device)
            for start in range(0, len(shuffled), self.batch):
                index = shuffled[start : start + self.batch]
                optimiser.zero_grad()
                criterion(self.network(x[index])[:, 0], y[index]).backward()
                optimiser.step()
                if schedule.last_epoch < steps:
                    schedule.step()
            self.network.eval()
            with torch.no_grad():
                value = float(criterion(self.network(x[:held])[:, 0], y[:held]))
            if value < best - 1e-6:
                best, kept, stale = value, self._state(), 0
            else:
                stale += 1
                if stale > self.patience:
                    break
        self.network.load_state_dict(kept)
        return self

    def _state(self) -> dict[str, Any]:
        return {k: v.detach().clone() for k, v in self.network.state_dict().items()}

    def decision_function(self, rows: FloatArray) -> FloatArray:
        """The log-odds."""
        import torch

        self.network.eval()
        out = []
        with torch.no_grad():
            for start in range(0, len(rows), 1 << 18):
                part = torch.as_tensor(
                    rows[start : start + (1 << 18)], dtype=torch.float32, device=self.device
                )
                out.append(self.network(part)[:, 0].cpu().numpy())
        return np.concatenate(out).astype(float)
