"""Scores of canaries under a model of PyTorch: losses, and inner products of gradients.

PyTorch is imported where it is used and is no requirement. A score depends on what training released and
on the canaries alone, never on the coins, as `one_run` requires.

Black box: −loss of each canary under the trained model. White box: over the steps t of the training,

    score of canary c = Σ_t ⟨u_t, clip(∇ loss_c(θ_t))⟩,

where u_t is the noisy gradient that the optimizer applies and θ_t the weights before the step (Nasr et
al. 2023, arXiv:2302.07956; Steinke, Nasr & Jagielski 2023, arXiv:2305.08846). A canary that is in the
batch adds its own clipped gradient to u_t. This score sees all noisy gradients, which is what the
accountant of DP-SGD assumes that an attacker sees; the loss sees the last weights alone.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.errors import InvalidInput, MissingExtra, warn

#: Names of the column of targets in a dict, as libraries of language models have them.
_TARGETS = ("labels", "label")
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_NO_REDUCTION = (
    'it must give a loss a canary: write torch.nn.CrossEntropyLoss(reduction="none"), and for a loss a '
    "token loss.flatten(1).mean(1)"
)


def losses(model: Any, loss_fn: Any, rows: Any, batch_size: int, device: Any) -> FloatArray:
    """The loss of every row, in batches, in eval mode and without gradients."""
    try:
        import torch
    except ImportError:
        arrays = "with arrays, give the scores, such as −loss, to canaries.audit"
        raise MissingExtra(f"canaries.score needs PyTorch ({arrays}), which", "torch") from None

    size, place = checks.whole("batch_size", batch_size), _place(model, device)
    found = []
    with torch.no_grad(), _evaluated(model):
        for inputs, targets in _batches(rows, size, *place):
            args, kwargs = _arguments(inputs)
            loss, many = loss_fn(model(*args, **kwargs), targets), len(targets)
            if tuple(getattr(loss, "shape", ())) != (many,):
                got = f"shape {tuple(loss.shape)}" if hasattr(loss, "shape") else checks.shown(loss)
                raise InvalidInput(f"loss_fn gave {got} for {many:,} canaries; {_NO_REDUCTION}")
            found.append(loss.double().cpu().numpy())
    return _numbers("loss", np.concatenate(found))


class GradientScores:
    """Adds up, at every step of an optimizer, the inner products of its gradient with those of canaries.

    With Opacus the noisy gradient stands in `p.grad` when its `original_optimizer` makes its step; the
    hook is there, and the accountant's own is untouched. Canaries' gradients are clipped as Opacus clips,
    and not at all with another optimizer. They are taken in eval mode (dropout off).
    """

    def __init__(
        self, model: Any, loss_fn: Any, optimizer: Any, rows: Any, batch_size: int, device: Any
    ) -> None:
        inner = getattr(optimizer, "original_optimizer", optimizer)
        if not hasattr(inner, "register_step_pre_hook"):
            raise InvalidInput(
                f"optimizer must be one of PyTorch or of Opacus, got {checks.shown(optimizer)}"
            )
        place = _place(model, device)
        while type(model).__module__.startswith("opacus.") and hasattr(model, "_module"):
            model = model._module  # inside the wrapper of Opacus
        self._model, self._loss_fn, self._optimizer = model, loss_fn, optimizer
        self._parameters = {n: p for n, p in self._model.named_parameters() if p.requires_grad}
        if not self._parameters:
            raise InvalidInput("model has no parameter with requires_grad=True: none is trained")
        self._bare = _without_hooks(self._model)
        self._batches = list(_batches(rows, checks.whole("batch_size", batch_size), *place))
        self._sum = np.zeros(sum(len(targets) for _, targets in self._batches))
        #: Steps that were recorded.
        self.steps = 0
        self._hook = inner.register_step_pre_hook(self._step)

    @property
    def scores(self) -> FloatArray:
        """A score a canary, larger if it seems to have been in the training data."""
        if not self.steps:
            raise InvalidInput(
                "no step was recorded; call record(…) before training, with the optimizer that trains "
                "(with Opacus the one that make_private gives)"
            )
        return _numbers("gradient", self._sum.copy())

    def stop(self) -> None:
        """Record no further step."""
        self._hook.remove()

    def _step(self, *_: Any) -> None:
        """Add the inner products at the weights before this step."""
        import torch

        weights = {name: p.detach() for name, p in self._parameters.items()}
        update = {name: p.grad for name, p in self._parameters.items() if p.grad is not None}
        rest = {n: p.detach() for n, p in self._model.named_parameters() if n not in weights}
        rest |= dict(self._model.named_buffers())

        def loss(trained: Any, inputs: Any, target: Any) -> Any:
            one = _arguments({name: value[None] for name, value in inputs.items()})
            out = torch.func.functional_call(self._bare, {**rest, **trained}, *one)
            return self._loss_fn(out, target[None]).sum()

        each = torch.func.vmap(torch.func.grad(loss), (None, 0, 0), randomness="different")
        limit = getattr(self._optimizer, "max_grad_norm", None)
        unclipped = limit is None and any(
            hasattr(p, "grad_sample") for p in self._parameters.values()
        )
        if unclipped and not self.steps:
            warn(
                "the model is trained by Opacus, and record(…) was not given the optimizer that "
                "make_private returns: gradients of canaries are not clipped, and scores are weaker"
            )
        found = []
        for inputs, targets in self._batches:
            gradients = each(weights, inputs, targets)
            dots = sum(torch.tensordot(gradients[n], u, u.dim()) for n, u in update.items())
            if limit is not None:
                squares = sum(g.flatten(1).square().sum(1) for g in gradients.values())
                dots = dots * torch.clamp(limit / squares.sqrt().clamp(min=1e-30), max=1.0)
            found.append(dots.double().cpu().numpy())
        self._sum += np.concatenate(found)
        self.steps += 1


def _numbers(what: str, values: FloatArray) -> FloatArray:
    """The values, if none is NaN."""
    if np.isnan(values).any():
        raise InvalidInput(
            f"the {what} of canary {int(np.isnan(values).argmax()):,} is NaN; has training diverged? "
            "Lower the learning rate, or check the inputs: every canary needs a score"
        )
    return values


# --- models


def _arguments(inputs: dict[Any, Any]) -> tuple[tuple[Any, ...], dict[Any, Any]]:
    """The model's arguments: a tuple's input by place, a dict's by name."""
    return ((inputs[0],), {}) if 0 in inputs else ((), inputs)


@contextmanager
def _evaluated(model: Any) -> Iterator[None]:
    """The model in eval mode; every module is in its former mode afterwards."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def _without_hooks(model: Any) -> Any:
    """The model's structure alone, without values and hooks: those of Opacus are not for `torch.func`."""
    bare = copy.deepcopy(model).to("meta").eval()
    for module in bare.modules():
        for kind in _HOOKS:
            getattr(module, kind).clear()
    return bare


def _place(model: Any, device: Any) -> tuple[Any, Any]:
    """The device and the floating-point type of a batch: those of the model's parameters."""
    first = next(iter(model.parameters()), None) if hasattr(model, "parameters") else None
    if first is None:
        raise InvalidInput(f"model must be a torch.nn.Module, got {checks.shown(model)}")
    return (first.device if device is None else device), first.dtype


# --- canaries


def _batches(rows: Any, size: int, device: Any, kind: Any) -> Iterator[tuple[Any, Any]]:
    """Inputs, a dict, and targets of every batch; floating-point numbers of the model's type."""
    import torch

    def moved(value: Any) -> Any:
        tensor = torch.as_tensor(value)
        return tensor.to(device, kind) if tensor.is_floating_point() else tensor.to(device)

    by_column = isinstance(rows, dict)
    many = len(next(iter(rows.values()))) if by_column else len(rows)
    for start in range(0, many, size):
        places = range(start, min(start + size, many))
        if by_column:
            batch = {name: column[start : places.stop] for name, column in rows.items()}
        else:
            items = torch.utils.data.default_collate([rows[k] for k in places])
            parts = items if isinstance(items, (list, tuple)) else [items]
            batch = items if isinstance(items, dict) else dict(enumerate(parts))
        target = next((n for n in (*_TARGETS, 1) if n in batch), None)
        if target is None or len(batch) < 2 or (target == 1 and len(batch) > 2):
            raise InvalidInput(
                "canaries must be pairs (x, y), or dicts with a column labels, got the parts "
                f"{', '.join(map(str, batch))}; give Canaries((X, y), …)"
            )
        tensors = {name: moved(value) for name, value in batch.items()}
        yield {name: value for name, value in tensors.items() if name != target}, tensors[target]
