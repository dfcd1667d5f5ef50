"""Every figure and table of the papers runs in a tiny setting and writes what it should."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import dpassay as dp

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

from papers import core, fdp_cifar, page
from papers.__main__ import main
from tests.helpers import trained_models

ROOT = Path(core.__file__).parents[1]
RUNNABLE = [key for key, item in core.ITEMS.items() if item.make is not None]


def tiny(key: str, folder: Path) -> Path:
    return core.run(
        key, runs=1, shrink=0.001, workers=1, results=folder / "results", cache=folder / "cache"
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where results go; trained models are made up, whatever is in the repository."""
    made = tmp_path_factory.mktemp("papers")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCORES", str(trained_models(made / "paper.npz")))
        yield made


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")  # a network of 2000 draws
@pytest.mark.parametrize("key", RUNNABLE)
def test_an_item_writes_numbers_and_its_chart(key, folder):
    path = tiny(key, folder)
    record = json.loads(path.read_text())
    assert record["rows"]
    assert record["measured"].endswith(".")
    assert record["paper"]["reports"] == core.ITEMS[key].reports
    if not core.ITEMS[key].name.startswith("table"):
        assert path.with_suffix(".svg").read_text().startswith("<svg")
        assert "vegaEmbed" in path.with_suffix(".html").read_text()
        assert "vegaEmbed" in (folder / "results" / "vega.js").read_text(encoding="utf-8")


def test_the_page_mentions_every_item_run_or_not(tmp_path):
    tiny("pure/table1", tmp_path)
    page.write(tmp_path / "RESULTS.md", tmp_path / "results")
    text = (tmp_path / "RESULTS.md").read_text()
    for key in core.ITEMS:
        assert f"### {key}:" in text
    assert "Missing" in text


def test_a_page_a_paper_lists_what_is_in_it_and_names_functions_that_exist(tmp_path):
    written = page.write_papers(tmp_path / "docs")
    assert [path.name for path in written] == [
        "pure.md",
        "renyi.md",
        "eureka.md",
        "fdp.md",
        "index.md",
    ]
    for path in written[:-1]:
        text = path.read_text()
        for key, item in core.ITEMS.items():
            if item.paper == path.stem:
                assert f"### {key}:" in text
        for name in set(re.findall(r"`dp\.([\w.]+)", text)):
            thing = dp
            for part in name.rstrip(".").split("."):
                thing = getattr(thing, part)
        for picture in re.findall(r"{figure} (\S+)", text):
            assert (path.parent / picture).exists()


def test_another_seed_gives_other_draws(tmp_path):
    def experiment(seed):
        return seed

    first, other = (
        core.Lab(core.ITEMS["pure/fig1"], seed=seed, cache=tmp_path).runs(experiment, count=5)
        for seed in (0, 1)
    )
    assert not set(first) & set(other)


def test_models_that_were_not_trained_are_asked_for(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SCORES", str(tmp_path / "none.npz"))
    with pytest.raises(FileNotFoundError, match=r"examples\.run_dpsgd"):
        fdp_cifar.kept()
    monkeypatch.setattr("sys.argv", ["papers", "fdp/fig6"])
    monkeypatch.setattr(page, "write", lambda: None)
    assert main() == 0
    assert "is missing" in " ".join(capsys.readouterr().err.split())


def test_models_of_other_images_are_not_called_cifar_10(tmp_path, monkeypatch):
    path = trained_models(tmp_path / "authors.npz", data_set="other images")
    monkeypatch.setenv("SCORES", str(path))
    with pytest.raises(ValueError, match="trained on other images"):
        fdp_cifar._scores(*fdp_cifar.kept())


def test_random_halves_give_the_standard_error_over_independent_models(tmp_path):
    def files(count):
        for seed in range(count):
            path = trained_models(tmp_path / f"{seed}.npz", models=400, steps=(2,), seed=seed)
            yield str(path), str(seed)

    def whole(file):
        ce, logit = (fdp_cifar.curve(0, *file, f"first {name}", 0)["μ"] for name in ("CE", "logit"))
        return ce - logit

    spread = np.std([whole(file) for file in files(30)], ddof=1)
    halves = [[fdp_cifar.halved(k, *file, 0) for k in range(20)] for file in files(5)]
    ratio = spread / np.sqrt(np.mean(np.var(halves, axis=1)))
    assert 1 / 1.6 < ratio < 1.6  # relative errors of 13 % and 7 %: three of the ratio's, and bias


def test_the_page_in_the_repository_mentions_every_item():
    text = (ROOT / "papers" / "RESULTS.md").read_text()
    assert all(f"### {key}:" in text for key in core.ITEMS)


def test_the_list_is_complete():
    wanted = {
        "pure": "fig1 fig2 fig3 fig4 fig5 fig6 table1 table2",
        "renyi": "fig1 table1 appendixF",
        "eureka": "fig4a fig4b fig4c fig4d fig5a fig5b fig5c fig6a fig6b fig7 fig8 fig9a fig9b fig9c "
        "fig10 fig11",
        "fdp": "fig1 fig2 fig3 fig4 fig5 fig6 fig7 fig8 fig9 fig10 fig11 fig12 table2 table3",
    }
    assert set(core.ITEMS) == {
        f"{p}/{name}" for p, names in wanted.items() for name in names.split()
    }


def test_runs_that_are_kept_are_not_repeated(tmp_path):
    calls = []

    def experiment(seed, size):
        calls.append(seed)
        return size

    lab = core.Lab(core.ITEMS["pure/fig1"], cache=tmp_path)
    assert lab.runs(experiment, 7, count=3) == [7, 7, 7]
    kept = next(tmp_path.rglob("*.jsonl"))
    kept.write_text("\n".join(kept.read_text().splitlines()[:2]) + "\n[12, 0.")  # cut off
    again = core.Lab(core.ITEMS["pure/fig1"], cache=tmp_path)
    assert again.runs(experiment, 7, count=4) == [7, 7, 7, 7]
    assert len(calls) == 3 + 2
    assert len(set(calls)) == 4


def test_only_the_public_surface_is_imported():
    for path in (ROOT / "papers").glob("*.py"):
        assert "from dpassay" not in path.read_text()
        assert "import dpassay." not in path.read_text()


def test_the_command_lists_items_and_refuses_unknown_ones(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["papers"])
    assert main() == 0
    assert "pure/fig4" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", ["papers", "pure/fig99"])
    assert main() == 2
    assert "pure/fig99" in capsys.readouterr().err


@pytest.mark.parametrize(("write", "place"), [("", "mine/"), ("1", "")])
def test_results_of_the_repository_are_replaced_only_if_asked(
    write, place, tmp_path, monkeypatch, capsys
):
    made = []

    def run(key, *, results, **options):
        made.append(results)
        return results / "x.json"

    monkeypatch.setattr(core, "HOME", tmp_path)
    monkeypatch.setattr(core, "run", run)
    monkeypatch.setattr("sys.argv", ["papers", "pure/table1", "pure/fig1"])
    monkeypatch.setenv("WRITE", write)
    assert main() == 0
    assert made == [tmp_path / f"{place}results"] * 2
    assert (tmp_path / f"{place}RESULTS.md").exists()
    said = capsys.readouterr().err
    assert "1 of 2: pure/table1" in said
    assert ("WRITE=1 replaces" in said) == (write == "")
