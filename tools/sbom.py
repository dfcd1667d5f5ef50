"""A bill of materials of the environment it runs in, as CycloneDX JSON on stdout. Standard library only.

PYTHON -m tools.sbom dpassay      what dpassay is installed with, without pip itself
"""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import Distribution, distribution, distributions
from typing import Any

#: Tools of the environment itself.
_TOOLS = {"pip", "setuptools", "wheel"}


def licence(found: Distribution) -> str:
    """The licence as its metadata names it: an SPDX expression, a classifier, or a line of text."""
    about = found.metadata
    if "License-Expression" in about:
        return about["License-Expression"]
    listed = [line for line in about.get_all("Classifier") or () if line.startswith("License ::")]
    names = sorted({line.rpartition(" :: ")[2] for line in listed} - {"OSI Approved"})
    if names:
        return " and ".join(names)
    text = about["License"].strip() if "License" in about else ""
    return text.splitlines()[0] if text else ""


def _name(found: Distribution) -> str:
    return re.sub(r"[-_.]+", "-", str(found.metadata["Name"])).lower()


def _component(found: Distribution) -> dict[str, Any]:
    name, terms = _name(found), licence(found)
    purl = f"pkg:pypi/{name}@{found.version}"
    given = [{"license": {"name": terms}}] if terms else []
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": found.version,
        "purl": purl,
        "licenses": given,
    }


def bill(root: str) -> dict[str, Any]:
    """The bill of materials of `root` and of everything that is installed beside it."""
    others = [one for one in distributions() if _name(one) not in {root, *_TOOLS}]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**_component(distribution(root)), "type": "application"}},
        "components": sorted(map(_component, others), key=lambda one: str(one["name"])),
    }


if __name__ == "__main__":
    print(json.dumps(bill(sys.argv[1]), indent=1, ensure_ascii=False))
