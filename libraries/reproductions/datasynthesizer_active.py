"""DataSynthesizer: without a given domain, a value that one row holds comes out, or cannot."""

import random
from pathlib import Path
from tempfile import mkdtemp

import pandas as pd
from DataSynthesizer.DataDescriber import DataDescriber

folder = Path(mkdtemp())
for more in ([], ["r"]):
    pd.DataFrame({"a": ["p", "q"] * 7 + more}).to_csv(folder / "input.csv", index=False)
    describer = DataDescriber()
    describer.describe_dataset_in_independent_attribute_mode(
        folder / "input.csv",
        epsilon=1.0,
        attribute_to_is_candidate_key={"a": False},
        seed=random.SystemRandom().getrandbits(32),
    )
    found = describer.data_description["attribute_description"]["a"]
    print(f"{14 + len(more)} rows: {found['distribution_bins']}")
