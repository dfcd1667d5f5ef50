"""diffprivlib: the centre of a cluster without records gets no noise; one record is added."""

from diffprivlib.models import KMeans

for extra in ([], [[1.0]]):
    data, seen = [[0.0]] * 5 + extra, 0
    for _ in range(500):
        model = KMeans(2, epsilon=1.0, bounds=(0.0, 1.0)).fit(data)
        seen += model.cluster_centers_.max() < 0.375
    print(f"five records at 0 and {len(extra)} at 1: both centres below 0.375 in {seen} of 500")
