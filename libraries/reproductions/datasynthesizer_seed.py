"""DataSynthesizer: with the default seed the noise is the same in every run."""

import json
from pathlib import Path
from tempfile import mkdtemp

import pandas as pd
from DataSynthesizer.DataDescriber import DataDescriber
from DataSynthesizer.DataGenerator import DataGenerator

folder = Path(mkdtemp())
(folder / "domain.json").write_text(json.dumps({"a": ["p", "q"]}))
for rows in (["p"] * 15, ["p"] * 15 + ["q"]):
    pd.DataFrame({"a": rows}).to_csv(folder / "input.csv", index=False)
    tables = set()
    for _ in range(100):
        describer, generator = DataDescriber(), DataGenerator()
        describer.describe_dataset_in_independent_attribute_mode(
            folder / "input.csv",
            epsilon=1.0,
            attribute_to_datatype={"a": "String"},
            attribute_to_is_categorical={"a": True},
            attribute_to_is_candidate_key={"a": False},
            categorical_attribute_domain_file=folder / "domain.json",
        )
        probabilities = describer.data_description["attribute_description"]["a"]
        tables.add(tuple(probabilities["distribution_probabilities"]))
    print(f"{len(rows)} rows: {len(tables)} distribution in 100 runs, {tables}")
