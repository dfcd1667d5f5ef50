"""Opacus: steps of its optimizers, a data loader that samples, and its accountants.

Neighbours add or remove one example; the claim is what the accountant says of the steps that were taken.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from opacus import GradSampleModule, PrivacyEngine
from opacus.accountants import GaussianAccountant, PRVAccountant, RDPAccountant
from opacus.optimizers import AdaClipDPOptimizer, DPOptimizer, DPPerLayerOptimizer

from dpassay.blackbox.inputs import Reals
from libraries import dominating
from libraries.cases import Case, Finding, both
from libraries.dominating import Part
from libraries.spaces import with_hunts

DISTRIBUTION = "opacus"
warnings.filterwarnings("ignore")
torch.set_num_threads(1)

_NOISE = 2.0
_PROVEN = "the ideal mechanism keeps the claim; only its values are looked at"
_GRADIENTS: dict[str, Any] = {"space": Reals(-10, 10, length=(1, 4), convert="list")}
#: Cases that are hunted too.
_HUNTED: dict[str, dict[str, Any]] = {
    "a step, values": _GRADIENTS,
    "a step, bits": _GRADIENTS,
    "a step, a NaN example": {**_GRADIENTS, "outside": True},
    "a step, per layer": _GRADIENTS,
    "a step, adaptive clipping": _GRADIENTS,
    "an epoch with Poisson sampling, a fifth example": {
        "space": Reals(0, 1, length=(4, 5), convert="list"),
        "n": 1_000,
    },
}


def _spent(steps: int, rate: float = 1.0, kind: Any = RDPAccountant) -> tuple[str, str]:
    """The claim after some steps of that noise multiplier, and the words for it."""
    accountant = kind()
    for _ in range(steps):
        accountant.step(noise_multiplier=_NOISE, sample_rate=rate)
    epsilon = float(accountant.get_epsilon(1e-3))
    said = f"{kind.__name__}: {steps} steps, noise_multiplier {_NOISE:g}, sample_rate {rate:g}"
    return f"eps={epsilon!r}, delta=1e-3", f"{said}: ε = {epsilon:.4g} at δ = 10⁻³"


def _steps(make: Any, steps: int = 1, **options: Any) -> Callable[[Any], Any]:
    """Training by one gradient a step on f(w) = Σ w·x; what is released are all the weights."""
    module = GradSampleModule(torch.nn.Linear(1, 1, bias=False))
    plain = torch.optim.SGD(module.parameters(), lr=1.0)
    optimizer = make(plain, noise_multiplier=_NOISE, expected_batch_size=1, **options)
    (weight,) = module.parameters()

    def trained(rows: Any) -> Any:
        with torch.no_grad():
            weight.zero_()
        released = []
        for _ in range(steps):
            optimizer.zero_grad()
            module(torch.tensor(rows).reshape(-1, 1)).sum().backward()
            optimizer.step()
            released.append(float(weight.detach()[0, 0]))
        return released if steps > 1 else released[0]

    return trained


def _case(name: str, api: str, call: Any, pair: Any, spent: tuple[str, str], **more: Any) -> Case:
    claim, said = spent
    more = {"relation": "add_remove", "n": 2_500, "group": "model", "sound": _PROVEN, **more}
    return Case(name, f"opacus.{api}", call, pair, claim, said, **more)


def cases() -> Iterator[Case]:
    """All cases."""
    return with_hunts(_by_hand(), _HUNTED, n=8_000)


def _by_hand() -> Iterator[Case]:
    added = [1.0], [1.0, 1.0]
    clip: dict[str, Any] = {"max_grad_norm": 1.0}
    one = _steps(DPOptimizer, **clip)
    api = "optimizers.DPOptimizer"
    yield from both(_case("a step", api, one, added, _spent(1), n=3_000), "")
    secure = _steps(DPOptimizer, secure_mode=True, **clip)
    yield from both(_case("a step, secure_mode", api, secure, added, _spent(1), n=3_000), "")
    yield _case(
        "a step, an example of 1e6",
        api,
        one,
        ([1.0], [1.0, 1e6]),
        _spent(1),
        look="values",
        trap="a gradient far beyond the clipping norm",
    )
    yield _case(
        "a step, a NaN example",
        api,
        one,
        ([1.0], [1.0, float("nan")]),
        _spent(1),
        look="values",
        trap="an example whose gradient is NaN",
        sound="",
    )
    yield _case(
        "a step, an infinite example",
        api,
        one,
        ([1.0], [1.0, float("inf")]),
        _spent(1),
        look="values",
        trap="an example whose gradient is infinite",
        sound="",
    )
    yield _case("two steps", api, _steps(DPOptimizer, 2, **clip), added, _spent(2), look="values")
    yield _case(
        "a step, PRV accountant", api, one, added, _spent(1, kind=PRVAccountant), look="values"
    )
    layers = _steps(DPPerLayerOptimizer, max_grad_norm=[1.0])
    yield _case(
        "a step, per layer",
        "optimizers.DPPerLayerOptimizer",
        layers,
        added,
        _spent(1),
        look="values",
    )
    yield from _sampled()
    yield from _adaptive()
    yield from _accountants()


def _accountants() -> Iterator[Case]:
    """Each accountant on steps with and without sampling, against draws from the dominating pair."""

    def epsilon(kind: Any) -> Callable[[Sequence[Part], float], float]:
        def spent(parts: Sequence[Part], delta: float) -> float:
            accountant = kind()
            for part in parts:
                for _ in range(part.times):
                    accountant.step(noise_multiplier=part.scale, sample_rate=part.rate)
            return float(accountant.get_epsilon(delta))

        return spent

    steps = [*dominating.gaussians(), *dominating.sampled()]
    said = "Return privacy budget (epsilon) expended so far (docstring of get_epsilon)"
    for kind in (RDPAccountant, PRVAccountant):
        name = kind.__name__
        every = [*steps, dominating.mixed()[1]]
        yield from dominating.cases(name, f"opacus.accountants.{name}", every, epsilon(kind), said)
    sampled = [parts for parts in steps if parts[0].rate < 1]
    yield from dominating.cases(
        "GaussianAccountant",
        "opacus.accountants.GaussianAccountant",
        sampled,
        epsilon(GaussianAccountant),
        said,
        sound="",
    )


def _sampled() -> Iterator[Case]:
    """A pass of the engine over a few examples, in batches of two on average.

    The engine makes ⌈n/2⌉ batches of n examples, takes each example with the inverse of that number, and
    divides by ⌊n/⌈n/2⌉⌋. From 4 to 5 examples there is a third batch; from 5 to 6 the divisor doubles.
    """

    def trained(rows: Any) -> Any:
        model = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.zeros_(model.weight)
        data = torch.utils.data.TensorDataset(torch.tensor(rows).reshape(-1, 1))
        module, optimizer, loader = PrivacyEngine().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
            data_loader=torch.utils.data.DataLoader(data, batch_size=2),
            noise_multiplier=_NOISE,
            max_grad_norm=1.0,
        )
        released = []
        for (batch,) in loader:
            optimizer.zero_grad()
            module(batch).sum().backward()
            optimizer.step()
            released.append(float(model.weight[0, 0]))
        return released

    api = "PrivacyEngine.make_private"
    more: dict[str, Any] = {"look": "values", "n": 600}
    yield _case(
        "an epoch with Poisson sampling",
        api,
        trained,
        ([0.0] * 4, [0.0] * 3 + [1.0]),
        _spent(2, 0.5),
        trap="an example without gradient in place of one: added, with the number of examples as it was",
        shown="three examples at 0 and one without gradient, and three at 0 and one at 1",
        **more,
    )
    yield _case(
        "an epoch with Poisson sampling, a fifth example",
        api,
        trained,
        ([0.0] * 4, [0.0] * 4 + [1.0]),
        _spent(2, 0.5),
        trap="one batch more",
        **{**more, "sound": ""},
    )
    yield _case(
        "an epoch with Poisson sampling, a sixth example",
        api,
        trained,
        ([0.0] * 5, [0.0] * 5 + [1.0]),
        _spent(3, 1 / 3),
        trap="as many batches, and another divisor",
        **{**more, "sound": ""},
    )


def _adaptive() -> Iterator[Case]:
    adaptive = _steps(
        AdaClipDPOptimizer,
        max_grad_norm=1.0,
        target_unclipped_quantile=0.5,
        clipbound_learning_rate=0.2,
        max_clipbound=1.0,
        min_clipbound=0.9,
        unclipped_num_std=2.0,
    )
    yield _case(
        "a step, adaptive clipping",
        "optimizers.AdaClipDPOptimizer",
        adaptive,
        ([1.0], [1.0, 1.0]),
        _spent(1),
        look="values",
        sound="",
    )


FINDINGS: tuple[Finding, ...] = (
    Finding(
        title="Gaussian noise in single precision shows the sum of gradients in its lowest bits",
        kind="floating point",
        cases=("a step, bits", "a step, secure_mode, bits"),
        cause=(
            "Noise is drawn and added in float32: which numbers can come out depends on the sum. "
            "secure_mode adds four draws, which does not change that."
        ),
        known="https://github.com/meta-pytorch/opacus/issues/616",
        script="opacus_bits.py",
    ),
    Finding(
        title="Steps, rate and divisor follow the number of examples",
        kind="violation",
        cases=("an epoch with Poisson sampling, a *",),
        cause=(
            "privacy_engine.py takes sample_rate = 1 / len(data_loader) and expected_batch_size = "
            "int(len(dataset) * sample_rate), and the loader makes len(data_loader) batches. The "
            "accountants bound what one example changes at a fixed rate, number of steps and divisor; an "
            "example more changes these too. The claim holds for an example that replaces one without "
            "gradient, with the number of examples public."
        ),
        known="https://github.com/meta-pytorch/opacus/issues/571",
        script="opacus_size.py",
    ),
    Finding(
        title="The accountant by a central limit theorem gives too small an ε",
        kind="documented limit",
        cases=("GaussianAccountant, *",),
        cause=(
            "GaussianAccountant warns: GDP accounting is experimental and can underestimate privacy "
            "expenditure. The central limit theorem is for many steps at a small rate; "
            "here there are one and twenty."
        ),
        known="https://arxiv.org/abs/2106.02848",
        script="opacus_gaussian.py",
    ),
    Finding(
        title="A gradient that is not finite decides the step",
        kind="violation",
        cases=("a step, a NaN example", "a step, an infinite example"),
        cause=(
            "The norm of such a gradient is not finite, the clipping factor times the gradient is NaN, "
            "and so is the sum: the released weights are NaN with certainty."
        ),
        script="opacus_nan.py",
        report=(
            "DPOptimizer.clip_and_accumulate multiplies each gradient by min(1, C / (norm + 1e-6)). For "
            "an example whose gradient holds NaN or inf the product is NaN, so that one example turns "
            "the noisy step into NaN with probability 1, and without it the step is finite: the output "
            "tells whether the example was in the batch. Gradients may overflow on inputs an attacker "
            "chooses. A remedy is torch.nan_to_num on the clipped gradients (a factor of 0 where the "
            "norm is not finite), as jax-privacy does by default (nan_safe)."
        ),
    ),
)
