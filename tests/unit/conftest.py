"""Files of draws, written where a test may write."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers import csv_of


@pytest.fixture
def write(tmp_path):
    import pyarrow
    import pyarrow.feather
    import pyarrow.parquet

    def to(name, content):
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif name.endswith(".npy"):
            np.save(path, content, allow_pickle=True)
        elif name.endswith(".parquet"):
            pyarrow.parquet.write_table(pyarrow.table(content), path)
        elif name.endswith((".feather", ".arrow")):
            pyarrow.feather.write_feather(pyarrow.table(content), path)
        else:
            path.write_bytes(content.encode())
        return path

    return to


@pytest.fixture(params=["csv", "parquet"])
def twin(request, write):
    """Writes columns in either format."""

    def to(name, columns):
        if request.param == "parquet":
            return write(f"{name}.parquet", columns)
        return write(f"{name}.csv", csv_of(columns))

    return to
