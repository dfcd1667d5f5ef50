"""What tells draws that were used from fresh ones, also where some were removed or added.

A fingerprint is the digest of all rows, whatever their order, and of either side a few rows that came
once: those with the smallest marks, which the order does not change. Fresh draws from the same
distribution hit a row that came once in n draws with a probability of about 2 f₂ / (n f₁) each, with f_k
the number of different rows that came k times (Good 1953, doi:10.1093/biomet/40.3-4.237). If many more of
the rows kept are there, draws came before. Of outputs that repeat often that cannot be told.
"""

from __future__ import annotations

import base64
import hashlib
import math

import numpy as np

from dpassay._typing import IntArray
from dpassay.outputs.canonical import Outputs
from dpassay.sampling.dependence import row_marks

#: Rows of either side that are kept.
_KEPT = 64


def fingerprint_of(p: Outputs, q: Outputs) -> str:
    """The digest of draws, and what is kept of their rows."""
    digest = hashlib.sha256()
    kept = []
    for side in (p, q):
        marks = np.sort(row_marks(side))
        digest.update(marks.tobytes())
        kept.append(_rows_once(marks))
    return "|".join([digest.hexdigest(), *kept])


def drawn_before(fingerprint: str, p: Outputs, q: Outputs) -> bool:
    """Whether many of these draws are among those of the fingerprint."""
    now = np.unique(_short(np.concatenate([row_marks(p), row_marks(q)])))
    chance, found = 0.0, 0
    for line in fingerprint.split("|")[1:]:
        try:
            n, once, twice = (int(part) for part in line.split(",")[:3])
            marks = np.frombuffer(base64.b64decode(line.split(",")[3]), dtype="<u4")
        except (ValueError, IndexError):
            return False  # not one of ours
        if n > 0 and once > 0:
            rate = 2 * (twice + 5 * math.sqrt(max(twice, 0)) + 12) / (n * once)
            chance += marks.size * min(1.0, (len(p) + len(q)) * rate)
            found += int(np.count_nonzero(np.isin(marks, now)))
    return found > chance + 6 * math.sqrt(chance) + 4


def _rows_once(marks: IntArray) -> str:
    """n, f₁, f₂ and the first of the rows that came once, as text."""
    values, counts = np.unique(marks, return_counts=True)
    alone = _short(values[counts == 1])
    text = base64.b64encode(np.sort(alone)[:_KEPT].astype("<u4").tobytes()).decode()
    return f"{marks.size},{alone.size},{int(np.count_nonzero(counts == 2))},{text}"


def _short(marks: IntArray) -> IntArray:
    """The upper half of a mark, which is mixed well."""
    return np.asarray(marks.view(np.uint64) >> np.uint64(32), dtype=np.int64)
