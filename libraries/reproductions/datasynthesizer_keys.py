"""DataSynthesizer: whether all values of an attribute differ is read off the input, without noise."""

import random
from pathlib import Path
from tempfile import mkdtemp

import pandas as pd
from DataSynthesizer.DataDescriber import DataDescriber
from DataSynthesizer.DataGenerator import DataGenerator

folder = Path(mkdtemp())
for ids in (list(range(100, 115)), [*range(100, 115), 107]):
    table = pd.DataFrame({"id": ids, "a": ["p", "q"] * 7 + ["p"] * (len(ids) - 14)})
    table.to_csv(folder / "input.csv", index=False)
    describer, generator = DataDescriber(), DataGenerator()
    describer.describe_dataset_in_independent_attribute_mode(
        folder / "input.csv", epsilon=1.0, seed=random.SystemRandom().getrandbits(32)
    )
    describer.save_dataset_description_to_file(folder / "description.json")
    generator.generate_dataset_in_independent_mode(8, folder / "description.json")
    print(f"{len(ids)} rows: {generator.synthetic_dataset['id'].tolist()}")
