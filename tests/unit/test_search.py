"""The search: looks, their scores, and which pairs go on."""

import numpy as np
import pytest

import dpassay as dp
from dpassay.hunting.rows import Records
from dpassay.hunting.schema import RowCandidate, row_schema
from dpassay.hunting.screening import (
    DrawBudget,
    Effort,
    Screening,
    Trial,
    quick_score,
)
from dpassay.hunting.search import KEEP, Log, Search, _kept
from dpassay.hunting.shrinking import Shrinking
from dpassay.outputs.canonical import from_raw
from dpassay.privacy.pairs import Relation
from dpassay.sampling.budget import Clock
from dpassay.sampling.samples import Batch

CLAIM = dp.PureDP(1.0)


def batch(p, q):
    return Batch.of(from_raw(p, len(p)), from_raw(q, len(q)))


@pytest.mark.parametrize("kind", ["numbers", "vectors", "words", "texts"])
def test_a_quick_look_tells_a_leak_from_none(kind, seeds):
    """A pair that breaks the claim scores higher than pairs without a difference, nearly always."""

    def outputs(shift, rng):
        match kind:
            case "numbers":
                return rng.laplace(3 * shift, size=100)
            case "vectors":
                return rng.normal(shift, size=(100, 12))
            case "words":
                return list(np.where(rng.random(100) < 0.1 + 0.8 * shift, "yes", "no"))
        made = [f"{k}" for k in rng.integers(10**6, size=100)]  # hardly any text repeats
        return [text if rng.random() < 1 - 0.9 * shift else "known" for text in made]

    rng = np.random.default_rng(seeds[0])
    null = [quick_score(batch(outputs(0, rng), outputs(0, rng)), CLAIM, 10_000) for _ in range(40)]
    leak = [quick_score(batch(outputs(0, rng), outputs(1, rng)), CLAIM, 10_000) for _ in range(40)]
    assert np.median(leak) > max(null)
    assert max(null) < 3.0


def trial(name, score, **more):
    candidate = RowCandidate(((score,),), ((0.0,),), entry=name)
    return Trial(candidate, dp.Pair(0, 1), 100, (0, score), **more)


def test_a_quarter_goes_on_and_a_third_of_it_for_being_different():
    many = [trial("same", float(k)) for k in range(24)] + [
        trial(f"other {k}", -float(k)) for k in range(8)
    ]
    kept = _kept(many)
    assert len(kept) == len(many) // KEEP
    assert [one.rank[1] for one in kept[:6]] == [23.0, 22.0, 21.0, 20.0, 19.0, 18.0]
    assert {one.candidate.name for one in kept[6:]} == {"other 0", "other 1"}
    assert _kept([trial("a", 1.0, rejected="no")]) == []


def test_a_budget_keeps_what_is_beyond_a_share():
    budget = DrawBudget(1000)
    budget.spent = 600
    assert budget.affords(50, 0.65)
    assert not budget.affords(51, 0.65)
    assert not DrawBudget(1000, Clock(1e-9)).affords(1, 0.65)


def screening(mechanism, seed, budget=40_000, test=4000):
    space = dp.inputs.Reals(0, 1, (1, 8))
    pairs = Records(row_schema(space, seed), Relation.REPLACE_ONE)
    return Screening(
        mechanism=mechanism,
        space=pairs,
        claim=CLAIM,
        test=test,
        gamma=0.05,
        loss="auto",
        failing="leak",
        seed=seed,
        sampling=dp.Sampling(progress=False),
        budget=DrawBudget(budget),
    )


LOOKS = (Effort.QUICK, Effort.THOROUGH, Effort.COMPLETE)


def test_every_look_has_streams_of_its_own(seed):
    used = []

    def watched(data, size, rng):
        used.append(rng.bit_generator.seed_seq.spawn_key)
        return np.round(rng.laplace(size=size), 3)

    here = screening(watched, seed)
    candidate = here.space.random(np.random.default_rng(seed))
    for effort in LOOKS:
        here.trial(effort, candidate, 100)
    assert len(set(used)) == len(used)
    assert here.budget.spent == 600


def test_outputs_at_the_end_of_the_range_are_looked_at_without_a_warning(seed):
    def huge(data, size, rng):
        return np.column_stack([rng.choice([-1.7e308, 1.7e308], size=size), rng.normal(size=size)])

    here = screening(huge, seed)
    candidate = here.space.random(np.random.default_rng(seed))
    for effort in LOOKS:
        assert not here.trial(effort, candidate, 300).rejected


def test_what_cannot_be_looked_at_is_said_and_the_hunt_goes_on(seed, monkeypatch):
    def broken(*given, **options):
        raise OverflowError("too large")

    here = screening(lambda data, size, rng: rng.normal(size=size), seed)
    monkeypatch.setattr("dpassay.hunting.screening.learn", broken)
    candidate = here.space.random(np.random.default_rng(seed))
    found = here.trial(Effort.THOROUGH, candidate, 100)
    assert found.rejected == "could not be evaluated (OverflowError: too large)"
    assert not found.conclusive


def test_shrinking_ends_at_the_simplest_pair(seed):
    """The largest value alone decides: one row against another is all it takes."""

    def largest(data, size, rng):
        return np.round(20 * np.max(data) + rng.laplace(size=size), 3)

    here = screening(largest, seed, budget=400_000)
    log = Log(lambda trial: None)
    rng = np.random.default_rng(seed)
    rows = tuple((float(value),) for value in rng.uniform(0, 0.3, size=7))
    candidate = RowCandidate(((0.123,),), ((0.987,),), rows, 3, entry="made up")
    found = here.trial(Effort.THOROUGH, candidate, 1600)
    assert found.conclusive
    shrunk = Shrinking(here, log).run(found).candidate
    assert shrunk.common == ()
    assert {shrunk.first, shrunk.second} == {((0.0,),), ((1.0,),)}
    assert shrunk.name == "simplified from: made up"


def test_the_search_stays_within_its_share(seed):
    def fair(data, size, rng):
        return np.round(np.sum(data) + rng.laplace(size=size), 3)

    here = screening(fair, seed)
    search = Search(here, Log(lambda trial: None), 30)
    search.run(outside=False, rng=np.random.default_rng(seed))
    assert here.budget.spent <= 0.65 * here.budget.total
    assert search.top.bound < 1.5


def rarely(data, size, rng):
    """Six outputs in a thousand show the value in the middle, else six in ten thousand: ε = log 10."""
    return rng.random(size) < (0.006 if 0.5 in data else 0.0006)


def searched(mechanism, seed, budget):
    """A search, and the draws a side with which its rounds began."""
    here, begun = screening(mechanism, seed, budget, test=budget // 11), []
    search = Search(here, Log(lambda trial: None), 100)
    whole = search._round
    search._round = lambda candidates: (begun.append(search.first), whole(candidates))[1]
    search.run(outside=False, rng=np.random.default_rng(seed))
    return search, begun


def test_what_is_rarely_seen_is_found_with_more_draws(seed):
    """Of hunts with 400,000 draws fewer than half find it."""
    found = []
    for k in range(6):
        search, begun = searched(rarely, seed + k, 3_000_000)
        apart = sorted(0.5 in side for side in search.top.pair) == [False, True]
        found.append(search.top.conclusive and apart)
        assert search.screening.budget.spent <= 0.65 * 3_000_000
        assert begun == sorted(begun)
    assert sum(found) >= 5


def test_rounds_have_more_draws_only_where_the_budget_is_for_them(seed):
    def fair(data, size, rng):
        return rng.random(size) < 0.3 + 0.2 * np.max(data)

    _, usual = searched(fair, seed, 400_000)
    assert set(usual) == {100}
    _, begun = searched(fair, seed, 1_200_000)
    assert sorted(begun) == begun
    assert begun[-1] >= 250


def test_an_interruption_of_a_later_round_loses_nothing(seed):
    search = Search(screening(rarely, seed), Log(lambda trial: None), 100)
    search.best = [trial("found before", 1.0)]

    def interrupted(candidates):
        raise KeyboardInterrupt

    search._round = interrupted
    with pytest.raises(KeyboardInterrupt):
        search._enlarged_round([], 400)
    assert search.top.candidate.name == "found before"


@pytest.mark.parametrize("conclusive", [True, False])
def test_what_fewer_draws_promised_counts_only_if_it_alone_was_sure(seed, conclusive):
    search = Search(screening(rarely, seed), Log(lambda trial: None), 100)
    search.best = [trial("few draws", 9.0, conclusive=conclusive)]
    search._round = lambda candidates: search._keep([trial("many draws", 1.0)])
    search._enlarged_round([], 400)
    assert search.top.candidate.name == ("few draws" if conclusive else "many draws")
