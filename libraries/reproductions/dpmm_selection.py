"""dpmm: PrivBayes selects by a normalised mutual information, with the sensitivity of the plain one."""

from copy import deepcopy

import pandas as pd
from dpmm.pipelines import PrivBayesPipeline

made = PrivBayesPipeline(epsilon=1.0, delta=1e-5, n_jobs=1, disable_processing=True)
rows = [(0, 0, 0), (0, 0, 1)] * 500
for more in ([], [(1, 1, 0)]):
    table = pd.DataFrame(rows + more, columns=["a", "b", "c"])
    hits = 0
    for _ in range(1_000):
        pipeline = deepcopy(made)
        pipeline.fit(table, {"a": 2, "b": 2, "c": 2}, marginals_only=True)
        hits += not any({"a", "b"} == set(clique) for clique in pipeline.gen.generator.cliques)
    print(f"{len(table)} rows: a and b are not selected together in {hits} of 1000")
