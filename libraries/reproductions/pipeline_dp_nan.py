"""PipelineDP: sum, mean and variance with ε = 1, with and without a person whose value is NaN."""

import math

import pipeline_dp as pdp

columns = pdp.DataExtractors(
    privacy_id_extractor=lambda row: row[0],
    partition_extractor=lambda row: row[1],
    value_extractor=lambda row: row[2],
)
for metric in (pdp.Metrics.SUM, pdp.Metrics.MEAN, pdp.Metrics.VARIANCE):
    for rows in ([(1, "a", 0.5)], [(1, "a", 0.5), (2, "a", math.nan)]):
        none = 0
        for _ in range(200):
            budget = pdp.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=0.0)
            params = pdp.AggregateParams(
                metrics=[metric],
                noise_kind=pdp.NoiseKind.LAPLACE,
                max_partitions_contributed=1,
                max_contributions_per_partition=1,
                min_value=0.0,
                max_value=1.0,
            )
            engine = pdp.DPEngine(budget, pdp.LocalBackend())
            found = engine.aggregate(rows, params, columns, public_partitions=["a"])
            budget.compute_budgets()
            none += math.isnan(dict(found)["a"][0])
        print(f"{metric} of {rows}: NaN in {none} of 200")
