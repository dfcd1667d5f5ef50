"""DataSynthesizer: the last category of a given domain comes out only if the input holds it."""

import json
import random
from multiprocessing import dummy
from pathlib import Path
from tempfile import mkdtemp

import pandas as pd
from DataSynthesizer.DataDescriber import DataDescriber
from DataSynthesizer.DataGenerator import DataGenerator
from DataSynthesizer.lib import PrivBayes

PrivBayes.Pool = dummy.Pool  # threads: faster, with the same outputs
folder = Path(mkdtemp())
(folder / "domain.json").write_text(json.dumps({"a": ["p", "q"], "b": ["u", "v", "w"]}))
found = {}
for more in ([], [("p", "w")]):
    rows = [("p", "u"), ("q", "v")] * 7 + more
    pd.DataFrame(rows, columns=["a", "b"]).to_csv(folder / "input.csv", index=False)
    hits = 0
    for _ in range(200):
        describer, generator = DataDescriber(), DataGenerator()
        describer.describe_dataset_in_correlated_attribute_mode(
            folder / "input.csv",
            k=1,
            epsilon=1.0,
            attribute_to_datatype={"a": "String", "b": "String"},
            attribute_to_is_categorical={"a": True, "b": True},
            attribute_to_is_candidate_key={"a": False, "b": False},
            categorical_attribute_domain_file=folder / "domain.json",
            seed=random.SystemRandom().getrandbits(32),
        )
        describer.save_dataset_description_to_file(folder / "description.json")
        generator.generate_dataset_in_correlated_attribute_mode(
            20, folder / "description.json", seed=random.SystemRandom().getrandbits(32)
        )
        hits += "w" in set(generator.synthetic_dataset["b"])
    found[len(rows)] = hits
print("w in the table, of 200 runs, by the number of rows:", found)
