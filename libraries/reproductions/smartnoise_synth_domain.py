"""smartnoise-synth: the last of the given categories comes out of MWEM only if the input holds it."""

import pandas as pd
from snsynth.mwem import MWEMSynthesizer
from snsynth.transform import LabelTransformer
from snsynth.transform.table import TableTransformer

for more in ([], [("r", "u")]):
    rows = pd.DataFrame([("p", "u"), ("q", "v")] * 10 + more, columns=["a", "b"])
    hits = 0
    for _ in range(200):
        first, second = LabelTransformer(nullable=False), LabelTransformer(nullable=False)
        first.fit(["p", "q", "r"])
        second.fit(["u", "v"])
        synthesizer = MWEMSynthesizer(epsilon=1.0, q_count=4, iterations=2)
        synthesizer.fit(rows, transformer=TableTransformer([first, second]))
        hits += "r" in set(synthesizer.sample(20)["a"])
    print(f"{len(rows)} rows: r in {hits} of 200 tables")
