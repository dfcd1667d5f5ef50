"""What several test files build their cases from. Fixtures are in the conftest.py beside the tests."""

import json
import math
import subprocess
import sys

import numpy as np

import dpassay as dp
from dpassay.outputs.canonical import align, from_raw
from dpassay.outputs.keys import learn
from dpassay.sampling.samples import Batch
from dpassay.scores.cell_counts import axes_for, bin_linear
from dpassay.scores.training import Training

# --- mechanisms and pairs


def laplace_mechanism(x, size, rng):
    return x + rng.laplace(size=size)


def one_laplace(x, rng):
    return x + rng.laplace()


def random_masses(rng, cells, zeros=0):
    p, q = rng.dirichlet(np.ones(cells)), rng.dirichlet(np.ones(cells))
    p[:zeros] = 0
    q[cells - zeros :] = 0
    return dp.Masses(p / p.sum(), q / q.sum())


# --- outputs


def objects(*items):
    array = np.empty(len(items), dtype=object)
    for index, item in enumerate(items):
        array[index] = item
    return array


def canonical(raw):
    return from_raw(raw, len(raw))


def form(outputs, row):
    """Everything the canonical form says about one output."""
    width = outputs.numbers.shape[1]
    rest = np.zeros(width) if outputs.rest is None else outputs.rest[row]
    numbers = [float(x) + 0.0 for x in outputs.numbers[row]]
    while numbers and numbers[-1] == 0.0:  # padding
        numbers.pop()
    return outputs.structure_of(row), numbers, [x for x in rest if x]


def learned(p, q):
    return learn(*align([from_raw(p, len(p)), from_raw(q, len(q))]))


# --- training draws


def training(p, q):
    return Training.of(Batch.of(from_raw(p, len(p)), from_raw(q, len(q))))


def training_of(samples):
    return Training.of(Batch.of(samples.p, samples.q))


def binned_of(values, size=8192):
    return bin_linear(values[:, None], axes_for([values[:, None]], size=size))


# --- tables in files


def listed(table):
    """Columns as lists, in which NaN equals itself."""
    return [
        ["nan" if isinstance(v, float) and math.isnan(v) else v for v in column.tolist()]
        for column in table.columns
    ]


def same(one, two):
    assert one.names == two.names
    assert [c.dtype for c in one.columns] == [c.dtype for c in two.columns]
    assert listed(one) == listed(two)
    assert [[type(v) for v in c.tolist()] for c in one.columns] == [
        [type(v) for v in c.tolist()] for c in two.columns
    ]
    assert one.origin.missing == two.origin.missing


def csv_of(columns):
    """Columns as pandas writes them, a null as nothing."""
    rows = [",".join(columns)]
    rows += [
        ",".join("" if v is None else str(v) for v in row)
        for row in zip(*columns.values(), strict=True)
    ]
    return "\n".join(rows) + "\n"


def finite_pairs():
    """Pairs of finite laws, of two outcomes to many, one with outcomes that a side lacks."""
    rng = np.random.default_rng(5)
    return [
        random_masses(rng, 2),
        random_masses(rng, 7),
        random_masses(rng, 200),
        random_masses(rng, 9, zeros=2),
    ]


def three_samples():
    """Draws with one bump, a sharp one, and two."""
    rng = np.random.default_rng(3)
    normal = rng.normal(size=3000)
    return {
        "normal": normal,
        "laplace": rng.laplace(size=3000),
        "bimodal": np.concatenate([normal[:1500], 6 + 0.3 * normal[1500:]]),
    }


# --- trained models


def trained_models(
    path, models=150, steps=(2, 6), shift=1.0, fault="", data_set="CIFAR-10", seed=0
):
    """A file as examples.run_dpsgd writes it, of normal logits that differ by `shift` on the canaries."""
    rng = np.random.default_rng(seed)
    training = {"rate": 0.5, "noise": 1.0, "removed": False, "canary": "gradient", "fault": fault}
    about = {"run": path.stem, "models": models, "steps": list(steps), "examples": 10}
    about |= {"seconds": 1.0, "device": "none", "canary_labels": [0, 0], "training": training}
    about["data"] = {"set": data_set, "file": "none"}
    kept = {"about": np.array(json.dumps(about))}
    for side, sign in ((0, 1), (1, -1)):
        logits = rng.normal(size=(models, len(steps), 2, 10))
        logits[:, :, 0, 0] += sign * shift
        kept[f"logits_{side}"] = logits.astype(np.float32)
        for name in ("losses", "along"):
            values = rng.normal(size=(models, len(steps))) + sign * shift
            kept[f"{name}_{side}"] = values.astype(np.float32)
    np.savez_compressed(path, **kept)
    return path


# --- a pytest of its own


def pytest_in(folder, *options, **files):
    """Run pytest in a folder of its own."""
    for name, text in files.items():
        (folder / name.replace("_ini", ".ini").replace("_py", ".py")).write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider"]
    return subprocess.run(
        [*command, *options], cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )
