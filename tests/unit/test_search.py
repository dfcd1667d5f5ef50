"""The search: looks, their scores, and which pairs go on."""

import numpy as np

import dpassay as dp
from dpassay.hunting.row_spaces import row_schema
from dpassay.hunting.rows import Records, RowCandidate
from dpassay.hunting.screening import DrawBudget, Effort, Log, Screening, Trial
from dpassay.hunting.search import KEEP, Search, _kept
from dpassay.privacy.relations import Relation
from dpassay.sampling.budget import Clock

CLAIM = dp.PureDP(1.0)


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
    pairs = Records(row_schema(space, seed), Relation.REPLACE_ONE, np.random.default_rng(seed))
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


LOOKS = (Effort.COUPLED, Effort.THOROUGH, Effort.COMPLETE)


def test_every_look_has_streams_of_its_own(seed):
    used = []

    def watched(data, size, rng):
        used.append(rng.bit_generator.seed_seq.spawn_key)
        return np.round(rng.laplace(size=size), 3)

    here = screening(watched, seed)
    candidate = here.space.random()
    for effort in LOOKS:
        here.trial(effort, candidate, 100)
    assert len(set(used)) == len(used)
    assert here.budget.spent == 600


def test_outputs_at_the_end_of_the_range_are_looked_at_without_a_warning(seed):
    def huge(data, size, rng):
        return np.column_stack([rng.choice([-1.7e308, 1.7e308], size=size), rng.normal(size=size)])

    here = screening(huge, seed)
    candidate = here.space.random()
    for effort in LOOKS:
        assert not here.trial(effort, candidate, 300).rejected


def test_what_cannot_be_looked_at_is_said_and_the_hunt_goes_on(seed, monkeypatch):
    def broken(*given, **options):
        raise OverflowError("too large")

    here = screening(lambda data, size, rng: rng.normal(size=size), seed)
    monkeypatch.setattr("dpassay.hunting.screening.learn", broken)
    candidate = here.space.random()
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
    shrunk = Search(here, log).shrunk(found).candidate
    assert shrunk.common == ()
    assert {shrunk.first, shrunk.second} == {((0.0,),), ((1.0,),)}
    assert shrunk.name == "simplified from: made up"


def test_the_search_stays_within_its_share(seed):
    def fair(data, size, rng):
        return np.round(np.sum(data) + rng.laplace(size=size), 3)

    here = screening(fair, seed)
    search = Search(here, Log(lambda trial: None))
    search.run(outside=False)
    assert here.budget.spent <= 0.65 * here.budget.total
    assert search.top.bound < 1.5


def rarely(data, size, rng):
    """Six outputs in a thousand show the value in the middle, else six in ten thousand: ε = log 10."""
    return rng.random(size) < (0.006 if 0.5 in data else 0.0006)


def test_what_is_rarely_seen_is_found_with_more_draws(seed):
    """Of hunts with 400,000 draws fewer than half find it."""
    found = []
    for k in range(6):
        here = screening(rarely, seed + k, 3_000_000, test=300_000)
        search = Search(here, Log(lambda trial: None))
        search.run(outside=False)
        apart = sorted(0.5 in side for side in search.top.pair) == [False, True]
        found.append(search.top.conclusive and apart)
        assert here.budget.spent <= 0.65 * 3_000_000
    assert sum(found) >= 5


def test_steps_have_draws_in_proportion_to_the_budget(seed):
    budgets = (40_000, 400_000, 4_000_000)
    searches = [Search(screening(rarely, seed, n), Log(lambda trial: None)) for n in budgets]
    assert [one.first for one in searches] == [30, 100, 1000]
