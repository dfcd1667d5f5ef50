"""Measure, write the JSON and the page, and compare with the baseline.

python -m benchmarks [--full] [--baseline]     --baseline stores this run as the one to compare with
"""

from __future__ import annotations

import json
import sys

from benchmarks.page import BASELINE, LATEST, measure, regressions, write_page

TOP = (LATEST.parent.parent / "summary.md").read_text(encoding="utf-8")

results = measure(full="--full" in sys.argv)
LATEST.parent.mkdir(exist_ok=True)
LATEST.write_text(json.dumps(results, indent=1, ensure_ascii=False), encoding="utf-8")
write_page(results, TOP)
print(f"{LATEST.relative_to(LATEST.parents[2])} and docs/benchmarks.md written")
if "--baseline" in sys.argv:
    BASELINE.write_text(LATEST.read_text(encoding="utf-8"), encoding="utf-8")
elif BASELINE.exists():
    slower = regressions(results, json.loads(BASELINE.read_text(encoding="utf-8")))
    print("\n".join(["slower than the baseline:", *slower]) if slower else "no regression")
    sys.exit(int(bool(slower)))
