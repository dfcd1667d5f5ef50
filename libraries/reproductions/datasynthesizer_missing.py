"""DataSynthesizer: noise for all rows, a distribution of those that are not missing."""

import json
import random
from pathlib import Path
from tempfile import mkdtemp

import pandas as pd
from DataSynthesizer.DataDescriber import DataDescriber

folder = Path(mkdtemp())
(folder / "domain.json").write_text(json.dumps({"a": ["p", "q"]}))
for values in (["p", "p"], ["p", "p", "q"]):
    table = pd.DataFrame({"a": [None] * 28 + values, "id": range(28 + len(values))})
    table.to_csv(folder / "input.csv", index=False)
    hits = 0
    for _ in range(1_000):
        describer = DataDescriber()
        describer.describe_dataset_in_independent_attribute_mode(
            folder / "input.csv",
            epsilon=1.0,
            attribute_to_datatype={"a": "String", "id": "Integer"},
            attribute_to_is_categorical={"a": True, "id": False},
            attribute_to_is_candidate_key={"a": False, "id": True},
            categorical_attribute_domain_file=folder / "domain.json",
            seed=random.SystemRandom().getrandbits(32),
        )
        found = describer.data_description["attribute_description"]["a"]
        hits += found["distribution_probabilities"][1] > 0.15
    print(f"{values}: the probability of q is above 0.15 in {hits} of 1000")
