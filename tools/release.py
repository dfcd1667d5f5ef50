"""Checks that a release can be made; `make release`, from the last commit and nothing else.

    python -m tools.release              all checks; what stands in the way of publishing is listed
    python -m tools.release --publish    the same, and what stands in the way is an error
    python -m tools.release --quick      without the test suite, the documentation and the report

A clean clone of HEAD is tested and built. The wheel is installed in an empty environment, where the
README's examples run. `dist/` then holds sdist, wheel, bill of materials and the list of licences.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Addresses that nobody has (RFC 2606): what a person fills in before the first publication.
PLACEHOLDER = "example.org"
#: Files that name addresses.
NAMING = (
    "pyproject.toml",
    "CITATION.cff",
    ".zenodo.json",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
    "docs/cite.md",
    ".github/ISSUE_TEMPLATE/config.yml",
    ".github/ISSUE_TEMPLATE/violation.yml",
)
#: Licences under which dependencies may be distributed with an MIT package, as they name themselves.
PERMISSIVE = re.compile(r"\b(MIT|BSD|Apache|PSF|Python Software Foundation|ISC|0BSD|CC0|Zlib)\b")
RECIPROCAL = re.compile(r"GPL|GNU|MPL|Mozilla|EUPL|SSPL|BUSL|Proprietary", re.IGNORECASE)
#: Variables that would lead from a clone or a fresh environment back to this one.
_OURS = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")
#: What the installed environment may weigh, in MB: see docs/dependencies.md.
LARGEST = 400


class Refused(Exception):
    """A check that failed, in words."""


def run(*command: str | Path, cwd: Path) -> str:
    """The output of a command; Refused with its end if it fails."""
    print("  $", *(Path(part).name if isinstance(part, Path) else part for part in command))
    inherited = {name: value for name, value in os.environ.items() if name not in _OURS}
    done = subprocess.run(
        command, cwd=cwd, env=inherited, capture_output=True, text=True, check=False
    )
    if done.returncode:
        tail = (done.stdout + done.stderr)[-3000:]
        raise Refused(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{tail}")
    return done.stdout


def read(path: Path) -> str:
    """The text of a file."""
    return path.read_text(encoding="utf-8")


def version_of(root: Path) -> str:
    """The version, which every file that names it must agree on."""
    found = {
        "_version.py": re.search(
            r'__version__ = "(.+)"', read(root / "src" / "dpassay" / "_version.py")
        ),
        "CITATION.cff": re.search(r"^version: (.+)$", read(root / "CITATION.cff"), re.MULTILINE),
        ".zenodo.json": re.search(r'"version": "(.+?)"', read(root / ".zenodo.json")),
    }
    named = {name: match[1] if match else None for name, match in found.items()}
    versions = set(named.values())
    if len(versions) != 1 or None in versions:
        raise Refused(f"the files name different versions: {named}")
    return str(versions.pop())


def changes(changelog: str, version: str) -> tuple[str, str]:
    """What the changelog says of this version, and what it lists as unreleased."""
    sections = dict(re.findall(r"^## (\S+)(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL))
    return sections.get(version, "").strip(), sections.get("Unreleased", "").strip()


def obstacles(root: Path, version: str) -> Iterator[str]:
    """What a person has to do before this version may be published."""
    for name in NAMING:
        if PLACEHOLDER in read(root / name):
            yield f"{name} names {PLACEHOLDER}: fill in the project's address or contact"
    released, unreleased = changes(read(root / "CHANGELOG.md"), version)
    if not re.match(r"(— |- )?\d{4}-\d\d-\d\d", released):
        yield f"CHANGELOG.md has no section '## {version} — YYYY-MM-DD'"
    elif unreleased:
        yield "CHANGELOG.md still lists changes as unreleased"
    if not (root / "tests" / "fixtures" / ".".join(version.split(".")[:2])).is_dir():
        yield "tests/fixtures has no files of this version: python -m tests.fixtures.results"


def check_metadata(root: Path) -> None:
    """Dependencies have lower bounds and no upper ones; the version has a changelog.

    The extra `dev` is for those who change dpassay: it may name exact versions of its tools.
    """
    project = tomllib.loads(read(root / "pyproject.toml"))["project"]
    listed: list[str] = list(project["dependencies"])
    for name, extra in project["optional-dependencies"].items():
        if name != "dev":
            listed += [one for one in extra if not one.startswith("dpassay[")]
    for one in listed:
        if not re.fullmatch(r"[\w.-]+(\[[\w,]+\])?>=[\w.]+", one):
            raise Refused(f"{one}: a dependency has a lower bound and no other")
    if not any(changes(read(root / "CHANGELOG.md"), version_of(root))):
        raise Refused("CHANGELOG.md says nothing of this version")


def build(root: Path, dist: Path) -> tuple[Path, Path]:
    """sdist and wheel, the wheel from the sdist, with everything in them that belongs there."""
    run(sys.executable, "-m", "build", "--outdir", dist, root, cwd=root)
    sdist, wheel = next(dist.glob("*.tar.gz")), next(dist.glob("*.whl"))
    source = root / "src"
    wanted = {
        path.relative_to(source).as_posix()
        for path in (source / "dpassay").rglob("*")
        if path.suffix in (".py", ".pyi", ".json", ".typed", ".html", ".css", ".js")
    }
    with zipfile.ZipFile(wheel) as held:
        missing = wanted - set(held.namelist())
    with tarfile.open(sdist) as archive:
        top = {name.partition("/")[2] for name in archive.getnames()}
    missing |= {"LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "pyproject.toml"} - top
    if missing:
        raise Refused(f"missing from wheel or sdist: {', '.join(sorted(missing)[:5])}")
    return sdist, wheel


def examples(readme: str) -> str:
    """The README's examples in Python, as one program."""
    return "\n\n".join(re.findall(r"^```python\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL))


def try_wheel(wheel: Path, root: Path, folder: Path) -> Path:
    """Install the wheel where nothing else is and run the README's examples; the interpreter."""
    venv.create(folder / "fresh", with_pip=True)
    python = folder / "fresh" / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(python, "-m", "pip", "install", "--quiet", wheel, cwd=folder)
    program = folder / "readme.py"
    program.write_text(examples(read(root / "README.md")), encoding="utf-8")
    run(python, program, cwd=folder)
    run(python, "-m", "dpassay", "zoo", cwd=folder)
    return python


def list_materials(python: Path, root: Path, dist: Path, version: str) -> None:
    """The bill of materials and the licences of what is installed with the wheel."""
    text = run(python, root / "tools" / "sbom.py", "dpassay", cwd=dist)
    (dist / f"dpassay-{version}.cdx.json").write_text(text, encoding="utf-8")
    lines = []
    for one in json.loads(text)["components"]:
        terms = one["licenses"][0]["license"]["name"] if one["licenses"] else ""
        lines.append(f"{one['name']} {one['version']}: {terms or 'not named'}\n")
        if not PERMISSIVE.search(terms) or RECIPROCAL.search(terms):
            raise Refused(f"{lines[-1].strip()} is no licence that is known to be permissive")
    (dist / "licences.txt").write_text("".join(lines), encoding="utf-8")
    print("".join(f"    {line}" for line in lines), end="")


def weights(python: Path) -> dict[str, float]:
    """MB of each package that is installed for an interpreter, without pip and setuptools."""
    packages = next(python.parents[1].rglob("site-packages"))
    found: dict[str, float] = {}
    for file in packages.rglob("*"):
        name = re.split(r"[-.]", file.relative_to(packages).parts[0])[0]
        if file.is_file() and name not in ("pip", "setuptools", "pkg_resources", "_distutils_hack"):
            found[name] = found.get(name, 0.0) + file.stat().st_size / 1e6
    return found


def weigh(python: Path) -> None:
    """Refuse an environment that has become too large."""
    megabytes = sum(weights(python).values())
    print(f"  installed: {megabytes:.0f} MB, at most {LARGEST}")
    if megabytes > LARGEST:
        raise Refused(f"the installed environment weighs {megabytes:.0f} MB, more than {LARGEST}")


def check(root: Path, dist: Path, publish: bool, quick: bool) -> list[str]:
    """All checks on a clone; what stands in the way of publishing."""
    version = version_of(root)
    print(f"dpassay {version}")
    check_metadata(root)
    open_ends = list(obstacles(root, version))
    if publish and open_ends:
        raise Refused("not to be published:\n  " + "\n  ".join(open_ends))
    if not quick:
        run("make", "check", "test", "docs", "paper", cwd=root)
    with tempfile.TemporaryDirectory() as folder:
        _, wheel = build(root, dist)
        python = try_wheel(wheel, root, Path(folder))
        list_materials(python, root, dist, version)
        weigh(python)
    return open_ends


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--publish", action="store_true", help="refuse what must not be published")
    parser.add_argument("--quick", action="store_true", help="without tests and documentation")
    given = parser.parse_args(arguments)
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    dist.mkdir()
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        try:
            if changed := run("git", "status", "--porcelain", cwd=ROOT).strip():
                print(f"  not part of the release, since not committed:\n{changed}")
                if given.publish:
                    raise Refused("there are changes that are not committed")
            run("git", "clone", "--quiet", ROOT, clone, cwd=ROOT)
            left = check(clone, dist, given.publish, given.quick)
        except Refused as error:
            print(f"refused: {error}", file=sys.stderr)
            return 1
    print(f"{dist}: {', '.join(sorted(path.name for path in dist.iterdir()))}")
    for one in left:
        print(f"before it is published: {one}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
