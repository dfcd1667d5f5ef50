"""Data, scripts and drawings, embedded safely in an HTML page.

Outputs of a mechanism are somebody else's strings. In scripts they appear only as JSON with every
character escaped that means something to an HTML parser; scripts run only if the page's content
security policy names their hash, and the policy forbids all connections.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import lru_cache
from importlib import resources
from typing import Any

from dpassay.errors import MissingExtra

_UNSAFE = {c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def need_extras() -> None:
    """Say how to get what a report needs, if it is missing."""
    try:
        import altair  # noqa: F401
        import jinja2  # noqa: F401
        import vl_convert  # noqa: F401
    except ImportError:
        raise MissingExtra("a report", "report") from None


def safe_json(data: Any) -> str:
    """JSON that any HTML parser leaves alone, and that parses to the same data."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for character, escaped in _UNSAFE.items():
        text = text.replace(character, escaped)
    return text


@lru_cache(maxsize=1)
def bundle() -> str:
    """Vega, Vega-Lite and vega-embed as one script."""
    import vl_convert

    code = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("\r\n", "\n")
    code = code.replace("</script", "<\\/script").replace("<!--", "<\\!--")
    return f"(function(){{{code}\n}})();"


def resource(name: str) -> str:
    """A file that lies beside this one."""
    text = resources.files("dpassay.report").joinpath(name).read_text(encoding="utf-8")
    return text.replace("\r\n", "\n")


def policy(*scripts: str) -> str:
    """A content security policy under which these scripts run, and nothing else does."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(s.encode('utf-8')).digest()).decode()}'"
        for s in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def drawing(spec: dict[str, Any], key: str, alt: str) -> str:
    """A specification as inline SVG that scales with the page."""
    import html

    import vl_convert

    svg = str(vl_convert.vegalite_to_svg(spec))
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{key}-\1"', svg)  # ids are shared by the whole page
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{key}-\1)", svg)
    label = html.escape(alt, quote=True)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
