"""PipelineDP: a count with ε = 1 of one row and of none, for a partition that is public."""

import pipeline_dp as pdp

columns = pdp.DataExtractors(
    privacy_id_extractor=lambda row: row[0],
    partition_extractor=lambda row: row[1],
    value_extractor=lambda row: 0,
)
params = pdp.AggregateParams(
    metrics=[pdp.Metrics.COUNT],
    noise_kind=pdp.NoiseKind.LAPLACE,
    max_partitions_contributed=1,
    max_contributions_per_partition=1,
)
for rows in ([(1, "a")], []):
    budget = pdp.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=0.0)
    engine = pdp.DPEngine(budget, pdp.LocalBackend())
    try:
        found = engine.aggregate(rows, params, columns, public_partitions=["a"])
        budget.compute_budgets()
        print(rows, dict(found))
    except ValueError as error:
        print(rows, "ValueError:", error)
