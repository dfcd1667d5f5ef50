"""From a case to a result to the page, with libraries made up for the purpose."""

from __future__ import annotations

import math
import random
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, norm

from dpassay.blackbox.inputs import Category, Reals
from libraries import __main__ as command
from libraries import dominating, environments, finding_pages, page, runner, spaces
from libraries.__main__ import _counted, joined
from libraries.cases import REPRODUCTIONS, RESULTS, Audited, Case, Finding, both, hunted, load


def coin(bit, honest=0.75):
    return bit if random.random() < honest else 1 - bit


def made(name="coin", **more):
    options = {
        "api": "fake.coin",
        "call": coin,
        "pair": (0, 1),
        "claim": "eps=1.2",
        "said": "the coin is ln 3 private",
        "relation": "replace",
        "n": 2_000,
        "sound": "a fair coin",
    }
    return Case(name, **{**options, **more})


def run(*cases, findings=()):
    return runner.run(
        "fake", cases, findings, version="1.0", versions={"fake": "1.0"}, say=lambda text: None
    )


@pytest.fixture(scope="module")
def audited():
    """A claim that holds, one that does not, a pair that shows nothing, and a function that raises."""
    broken = Finding(
        title="The coin is *not* fair <here>",
        kind="violation",
        cases=("loaded",),
        cause="It falls on the bit too often.",
        report="Please look at the coin & its rim: {loaded}.",
    )
    return run(
        made(),
        made("loaded", claim="eps=0.5", sound=""),
        made("equal", pair=(0, 0)),
        made("failing", call=lambda bit: 1 // 0),
        findings=(broken,),
    )


def test_verdicts_say_what_happened(audited):
    assert [one.verdict for one in audited.results] == ["clear", "violation", "blind", "error"]
    clear, refuted, _, failed = audited.results
    assert clear.lower_bound < 1.0986 < clear.smallest_detectable
    assert refuted.lower_bound > 0.5
    assert refuted.p_value <= runner.GAMMA
    assert "ZeroDivisionError" in failed.words


def test_violations_are_replayed_on_fresh_draws(audited):
    refuted = audited.results[1]
    assert refuted.replay.p_value <= runner.GAMMA
    assert (refuted.replay.hits_p, refuted.replay.hits_q) != (
        refuted.counts.hits_p,
        refuted.counts.hits_q,
    )
    assert refuted.replay.n_p == refuted.n
    assert all(one.replay is None for one in audited.results if one.verdict != "violation")


def test_what_the_claim_allows_lies_below_what_was_seen(audited):
    refuted = audited.results[1]
    shares = refuted.counts.hits_p / refuted.counts.n_p, refuted.counts.hits_q / refuted.counts.n_q
    assert refuted.allowed < max(shares)


def test_results_survive_being_written_down(audited):
    assert Audited.from_json(audited.to_json()) == audited


def test_a_finding_explains_violations_alone(audited):
    assert audited.finding_of(audited.results[1]) is audited.findings[0]
    assert audited.finding_of(audited.results[0]) is None
    unexplained = replace(audited, findings=())
    assert unexplained.finding_of(audited.results[1]) is None


def test_the_draws_of_a_case_do_not_depend_on_its_place():
    assert runner.seed_of(0, "a") == runner.seed_of(0, "a")
    assert len({runner.seed_of(seed, name) for seed in (0, 1) for name in ("a", "b")}) == 4


def test_two_cases_of_one_name_are_refused():
    with pytest.raises(ValueError, match="one name"):
        run(made(n=100), made(n=100))


def test_kinds_are_checked():
    with pytest.raises(ValueError, match="kind must be one of"):
        Finding(title="", kind="bug", cases=(), cause="")


def test_vectorised_cases_get_the_size():
    sizes = []

    def many(bit, size):
        sizes.append(size)
        return [coin(bit) for _ in range(size)]

    (found,) = run(made(call=many, vectorised=True)).results
    assert found.verdict == "clear"
    assert sum(sizes) == 2 * found.n


def test_most_of_the_time_of_a_slow_library_is_its_own():
    (found,) = run(made(call=lambda bit: (sum(range(20_000)), coin(bit))[1], n=1_000)).results
    assert 0.5 < found.own < 1


def test_a_hunt_finds_the_pair_of_a_space():
    case = hunted(made("loaded", claim="eps=0.5"), Category([0, 1]), n=4_000)
    (found,) = run(case).results
    assert found.verdict == "violation"
    assert found.tried > 0
    assert sorted(found.pair.split(" and ")) == ["0", "1"]
    assert found.replay.p_value <= runner.GAMMA


def test_an_exception_that_a_hunt_found_is_replayed():
    def refuses(bit):
        if bit:
            raise ValueError("no ones")
        return coin(bit)

    (found,) = run(hunted(made("refuses", call=refuses), Category([0, 1]), n=2_000)).results
    assert found.replay.p_value <= runner.GAMMA


def test_a_hunt_follows_the_case_that_it_is_named_for():
    space = spaces.columns({"a": Category([0, 1])}, (1, 3))
    cases = list(
        spaces.with_hunts([made("x"), made("y")], {"x": {"space": space, "user": "a"}}, n=5)
    )
    assert [one.name for one in cases] == ["x", "x, hunted", "y"]
    assert (cases[1].pair, cases[1].space, cases[1].n, cases[1].user) == (None, space, 5, "a")
    rows = [{"a": 0}, {"a": 1}]
    assert (space.convert(rows), spaces.tuples(rows)) == ({"a": [0, 1]}, [(0,), (1,)])


def test_the_norm_of_a_case_reaches_the_hunt(monkeypatch):
    given = {}

    def hunt(*words, **options):
        given.update(options)
        raise runner.dp.errors.MechanismError("enough")

    monkeypatch.setattr(runner.dp, "hunt", hunt)
    space = Reals(0, 1, length=2)
    run(hunted(made(), space, relation="query", norm="l1"), hunted(made("other"), space))
    assert given["norm"] == "each"
    run(hunted(made(), space, relation="query", norm="l1"))
    assert (given["relation"], given["norm"]) == ("query", "l1")


def test_findings_name_cases_with_a_star():
    finding = Finding(title="", kind="violation", cases=("L-*, 8 reports", "a.b"), cause="")
    assert finding.explains("L-GRR, 8 reports")
    assert finding.explains("a.b")
    assert finding.explains("a.b, hunted")
    assert not finding.explains("L-GRR, 8 reports, twice")
    assert not finding.explains("a-b")


def test_doubles_are_looked_at_twice():
    values, bits = both(made(), "")
    assert (values.look, bits.look) == ("values", "bits")
    assert values.sound
    assert not bits.sound


def test_a_part_run_again_keeps_the_rest_in_order(audited):
    again = replace(audited, results=(replace(audited.results[1], seed=9),), again=())
    whole = joined(audited, again, [one.name for one in audited.results])
    assert [one.name for one in whole.results] == [one.name for one in audited.results]
    assert whole.results[1].seed == 9
    newer = joined(audited, replace(again, version="2.0"), [one.name for one in audited.results])
    assert [one.name for one in newer.results] == ["loaded"]


@pytest.mark.parametrize("seed", [0, 1])
def test_another_seed_leaves_published_results_alone(tmp_path, monkeypatch, seed):
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    monkeypatch.setattr(command.runner, "load", lambda name: ("numpy", [made(n=500)], ()))
    assert command.main(["fake", "--seed", str(seed)]) == 0
    assert (tmp_path / "fake.json").is_file() == (seed == 0)


def test_a_part_of_the_cases_is_not_counted_as_a_run_again(capsys):
    with pytest.raises(SystemExit):
        command.main(["fake", "--again", "--only", "a", "--seed", "1"])
    assert "leave --only out" in capsys.readouterr().err


# --- accountants


@pytest.fixture
def seeded(monkeypatch):
    monkeypatch.setattr(dominating, "_RNG", np.random.default_rng(0))


@pytest.mark.parametrize(
    "parts",
    [
        [dominating.Part("Gaussian", 2.0, 3)],
        [dominating.Part("Laplace", 2.0, 3)],
        [dominating.Part("response", 0.7, 3)],
        [dominating.Part("Gaussian", 2.0, 3, 0.3), dominating.Part("Laplace", 2.0, 2, 0.4)],
    ],
)
def test_what_is_drawn_is_the_log_ratio_of_its_densities(parts, seeded):
    """E₀[exp(loss)] = 1 and E₁[exp(−loss)] = 1, each within five standard errors."""
    draw, n = dominating._drawn(parts), 100_000
    for record, sign in ((0, 1), (1, -1)):
        ratio = np.exp(sign * draw(record, n))
        assert abs(ratio.mean() - 1) < 5 * ratio.std() / math.sqrt(n)


def test_the_losses_of_gaussian_noise_have_its_privacy_profile(seeded):
    part, eps, n = dominating.Part("Gaussian", 2.0, 4), 0.5, 100_000  # μ = 1
    exact = norm.cdf(0.5 - eps) - math.exp(eps) * norm.cdf(-0.5 - eps)
    gain = np.maximum(1 - np.exp(eps - part.losses(1, n)), 0)
    assert abs(gain.mean() - exact) < 5 * gain.std() / math.sqrt(n)


def test_a_claim_that_is_too_small_is_refuted(seeded):
    parts = [[dominating.Part("Gaussian", 2.0, 4)]]  # ε = 2.32 at δ = 0.01
    small, right = (
        next(dominating.cases("fake", "fake", parts, lambda parts, delta, e=eps: e, "", (1e-2,)))
        for eps in (1.2, 2.33)
    )
    assert [one.verdict for one in run(small, replace(right, name="right")).results] == [
        "violation",
        "clear",
    ]


# --- the page


def test_the_page_has_a_row_and_a_dot_an_audit_and_a_page_a_finding(audited):
    text = page.page([audited])
    assert text.count(" data-library=") == len(audited.results)
    assert text.count("<circle") == len(audited.results)
    assert "4 audits of 1 libraries" in text
    ((name, text),) = finding_pages.pages([audited]).items()
    assert "not yet reported" in text
    bound = f"ε ≥ {audited.results[1].lower_bound:.2g}"
    assert f"Please look at the coin &amp; its rim: {bound}." in text
    assert "The coin is \\*not\\* fair \\<here\\>" in text
    assert name in page.page([audited])


def test_a_cell_of_the_matrix_links_to_the_first_of_its_audits(audited):
    text = page.page([replace(audited, library="fake <b>")])
    (anchor,) = re.findall(r'<a href="#([\w-]+)" title="fake &lt;b&gt; mechanism">4</a>', text)
    assert text.count(f'<tr id="{anchor}"') == 1


def test_known_findings_are_cited_instead_of_reported(audited):
    known = replace(audited.findings[0], known="https://example.org/1")
    (text,) = finding_pages.pages([replace(audited, findings=(known,))]).values()
    assert "https://example.org/1" in text
    assert "ready to send" not in text


def test_markup_in_names_stays_text(audited):
    hostile = replace(audited.results[0], name="<script>alert(1)</script>", pair='"><b>')
    text = page.page([replace(audited, results=(hostile,))])
    assert "<script>alert" not in text
    assert '"><b>' not in text


def test_a_finding_that_a_hunt_led_to_is_named(audited):
    led = replace(audited.findings[0], by_hunt=True)
    assert "Hunts led to" not in page.page([audited])
    text = page.page([replace(audited, findings=(led,))])
    assert (
        "Hunts led to these before anybody here had a pair that shows them: fake, [The coin" in text
    )


def test_false_alarms_stand_in_the_column_of_their_seed(audited):
    again = {"seed": 2, "audits": 7, "alarms": ["x"], "held": []}
    (row,) = re.findall(
        "^\\| `make libraries WHAT=fake` .*", page.page([replace(audited, again=(again,))]), re.M
    )
    assert row.endswith("| 0 of 3 |  | 1 of 7 |")


def test_runs_again_are_counted(audited):
    again = {"seed": 1, "audits": 7, "alarms": ["x"], "held": []}
    text = page.page([replace(audited, again=(again,))])
    assert "1 of 7 were, and 0 of these held on fresh draws" in " ".join(text.split())


def test_a_run_again_says_which_alarms_held(audited, tmp_path):
    loaded = audited.results[1]
    lucky = replace(loaded, name="lucky", replay=replace(loaded.replay, p_value=1.0))
    path = tmp_path / "fake.json"
    for results, held in (((lucky,), []), ((lucky, loaded), ["loaded"])):
        status = _counted(replace(audited, results=results), audited, path, seed=5)
        (run,) = Audited.from_json(path.read_text(encoding="utf-8")).again
        assert run["held"] == held
        assert run["alarms"] == [one.name for one in results]
        assert status == len(held)


# --- what is in the repository


def test_the_page_is_the_one_the_results_make():
    assert page.PAGE.read_text(encoding="utf-8") == page.page(load()), "python -m libraries.page"
    written = {path.name: path.read_text(encoding="utf-8") for path in page.FINDINGS.glob("*.md")}
    assert written == finding_pages.pages(load()), "python -m libraries.page"


def test_every_finding_has_a_page_of_its_own():
    found = finding_pages.ordered(load())
    assert len(finding_pages.pages(load())) == len(found)


@pytest.mark.parametrize("name", environments.names())
def test_every_library_with_pins_has_results(name):
    audited = Audited.from_json((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    pins = (environments.PINS / f"{name}.txt").read_text(encoding="utf-8").lower()
    written = name.replace("-", "[-_.]")
    assert re.search(rf"^{written}=={re.escape(audited.version)}$", pins, re.MULTILINE)
    refuted = [one for one in audited.results if one.verdict == "violation"]
    assert all(audited.finding_of(one) for one in refuted)
    assert all(one.replay and one.replay.p_value <= runner.GAMMA for one in refuted)
    assert not [one.name for one in refuted if one.sound]
    assert not [alarm for run in audited.again for alarm in run["held"]]


def test_false_alarms_are_as_rare_as_their_error_probability():
    """Over all libraries and seeds, against the exact binomial limit at level .01."""
    first = [one for audited in load() for one in audited.results if one.sound]
    again = [run for audited in load() for run in audited.again]
    alarms = sum(one.verdict == "violation" for one in first)
    alarms += sum(len(run["alarms"]) for run in again)
    audits = len(first) + sum(run["audits"] for run in again)
    assert audits > 300
    assert alarms <= binom.ppf(0.99, audits, runner.GAMMA)


def test_every_reproduction_belongs_to_a_finding():
    named = {finding.script for one in load() for finding in one.findings}
    assert {path.name for path in REPRODUCTIONS.glob("*.py")} == named


# --- environments


def test_unknown_libraries_are_an_error(capsys):
    assert environments.main(["nothing"]) == 2
    assert "nothing" in capsys.readouterr().err


def test_options_go_on_to_the_audit_and_the_page_is_made_anew(tmp_path, monkeypatch):
    commands = []

    class Done:
        returncode = 1

    def started(command, **options):
        commands.append(command[1:])
        return Done

    monkeypatch.setattr(environments, "make", lambda name: environments.python_of(name))
    monkeypatch.setattr(environments.subprocess, "run", started)
    monkeypatch.setattr(page, "PAGE", tmp_path / "libraries.md")
    monkeypatch.setattr(page, "FINDINGS", tmp_path / "libraries")
    assert environments.main(["opendp", "--only", "count", "--seed", "3"]) == 1
    assert commands == [["-m", "libraries", "opendp", "--only", "count", "--seed", "3"]]
    assert page.PAGE.read_text(encoding="utf-8") == page.page(load())


def test_an_environment_is_made_once_for_its_pins(tmp_path, monkeypatch):
    (tmp_path / "libraries" / "pins").mkdir(parents=True)
    (tmp_path / "libraries" / "pins" / "fake.txt").write_text("fake==1.0\n")
    (tmp_path / "pyproject.toml").write_text("")
    monkeypatch.setattr(environments, "ROOT", tmp_path)
    monkeypatch.setattr(environments, "PINS", tmp_path / "libraries" / "pins")
    commands = []

    def create(folder, with_pip, clear):
        folder.mkdir(parents=True, exist_ok=True)

    monkeypatch.setattr(environments.venv, "create", create)
    monkeypatch.setattr(
        environments.subprocess, "run", lambda command, check: commands.append(command)
    )
    first, second = environments.make("fake"), environments.make("fake")
    assert first == second
    assert len(commands) == 1
    assert str(tmp_path / "libraries" / "pins" / "fake.txt") in commands[0]
    (tmp_path / "libraries" / "pins" / "fake.txt").write_text("fake==2.0\n")
    environments.make("fake")
    assert len(commands) == 2
