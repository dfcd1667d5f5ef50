"""Kinds of output that are Python objects: sets, dictionaries, documents, trees, rankings, graphs."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from typing import Any

from benchmarks.output_kinds_base import (
    Rng,
    between,
    count,
    kind,
    letters,
    sample,
    shuffled,
)

KEYS = [f"k{index}" for index in range(200)]
OTHERS = KEYS[:7] + KEYS[8:]

# --- sets, lists and counts


@kind(lambda out: "k7" in out)
def set_of_keys(bit: int, rng: Rng) -> Any:
    """Presence of a key in a set."""
    return set(sample(OTHERS, 12 - bit, rng) + ["k7"] * bit)


@kind(lambda out: ("ann", 3) in out)
def frozenset_of_pairs(bit: int, rng: Rng) -> Any:
    """Presence of a pair in a frozenset."""
    users, items = rng.integers(0, 200, 9).tolist(), rng.integers(0, 20, 9).tolist()
    pairs = [(KEYS[user], item) for user, item in zip(users, items, strict=True)]
    return frozenset(pairs[bit:] + [("ann", 3)] * bit)


@kind(len, noise=count)
def set_size(number: int, rng: Rng) -> Any:
    """Number of keys in a set."""
    return set(sample(KEYS, between(1, 10 + number, 30), rng))


@kind(lambda out: 444 in out)
def list_item_presence(bit: int, rng: Rng) -> Any:
    """Presence of an item at any place of a list."""
    others = rng.integers(0, 2000, 15 - bit)
    return shuffled([444] * bit + (others + (others >= 444)).tolist(), rng)


@kind(lambda out: out.count("q"), noise=count)
def list_item_count(number: int, rng: Rng) -> Any:
    """Count of an item in a list of fixed length."""
    times = between(0, 4 + number, 30)
    return shuffled(["q"] * times + list(letters(30 - times, rng).replace("q", "r")), rng)


@kind(lambda out: len(out) - len(set(out)), noise=count)
def duplicates(number: int, rng: Rng) -> Any:
    """Number of duplicates in a list."""
    times = between(0, 2 + number, 8)
    items = sample(KEYS, 16 - times, rng)
    return shuffled(items + items[:times], rng)


@kind(lambda out: len(set(out)) < len(out))
def tie_within(bit: int, rng: Rng) -> Any:
    """Whether two numbers of an output are equal."""
    numbers = shuffled(rng.integers(1, 80_000, 12).cumsum().tolist(), rng)
    return shuffled(numbers[bit:] + numbers[-1:] * bit, rng)


@kind(lambda out: len(set(out)), noise=count)
def distinct_values(number: int, rng: Rng) -> Any:
    """Number of distinct values in a list of fixed length."""
    used = sample(KEYS, between(1, 8 + number, 25), rng)
    again = rng.integers(0, len(used), 30 - len(used)).tolist()
    return shuffled(used + [used[index] for index in again], rng)


@kind(lambda out: out["k7"], noise=count)
def counter(number: int, rng: Rng) -> Any:
    """Count of a key in a Counter of which keys come and go."""
    items = [KEYS[index] for index in rng.integers(8, 40, 25).tolist()]
    return Counter(shuffled(items + ["k7"] * between(0, 2 + number, 9), rng))


# --- dictionaries and documents


def histogram(size: int, rng: Rng) -> dict[str, int]:
    """Counts of some keys."""
    return dict(
        zip(sample(OTHERS[:40], size, rng), rng.integers(1, 30, size).tolist(), strict=True)
    )


@kind(lambda out: out.get("k7", 0), noise=count)
def histogram_count(number: int, rng: Rng) -> Any:
    """Count of a key in a histogram that leaves out empty keys."""
    counts = histogram(12, rng)
    if number > -3:
        counts["k7"] = 3 + number
    return dict(shuffled(list(counts.items()), rng))


@kind(lambda out: "k7" in out)
def histogram_key(bit: int, rng: Rng) -> Any:
    """Presence of a key in a histogram."""
    names = shuffled(sample(OTHERS[:40], 12 - bit, rng) + ["k7"] * bit, rng)
    return dict(zip(names, rng.integers(1, 30, 12).tolist(), strict=True))


@kind(lambda out: sum(out.values()), noise=count)
def histogram_total(number: int, rng: Rng) -> Any:
    """Sum of all counts of a histogram."""
    counts = histogram(10, rng)
    first = next(iter(counts))
    return counts | {first: 300 + number - sum(counts.values()) + counts[first]}


@kind(lambda out: list(out).index("age") < list(out).index("city"))
def dictionary_order(bit: int, rng: Rng) -> Any:
    """Which of two keys was inserted first."""
    names = sample(["age", "city", "day", "fee", "id", "sex"], 6, rng)
    if (names.index("age") < names.index("city")) != bit:
        swap = {"age": "city", "city": "age"}
        names = [swap.get(name, name) for name in names]
    return dict(zip(names, rng.integers(0, 10**6, 6).tolist(), strict=True))


@kind(lambda out: out["stats"]["groups"]["b"]["n"], noise=count)
def document_deep_value(number: int, rng: Rng) -> Any:
    """A value deep inside a document."""
    u, n = rng.random(5).tolist(), rng.integers(0, 50, 3).tolist()
    groups = {name: {"n": n[k], "mean": u[k]} for k, name in enumerate("abc")}
    groups["b"]["n"] = 20 + number
    return {
        "meta": {"run": letters(8, rng), "at": u[3]},
        "stats": {"groups": groups, "share": u[4]},
    }


@kind(lambda out: "error" in out["jobs"][1]["status"])
def document_deep_key(bit: int, rng: Rng) -> Any:
    """Presence of a key deep inside a document."""
    status: list[dict[str, Any]] = [{"code": int(code)} for code in rng.integers(0, 500, 3)]
    status[1] |= {"error": letters(4, rng)} if bit else {}
    return {"jobs": [{"id": letters(6, rng), "status": one} for one in status]}


@kind(lambda out: next(row["score"] for row in out if row["id"] == 3), noise=count)
def records_by_id(number: int, rng: Rng) -> Any:
    """A field of the record with one id, in a list of records in random order."""
    scores = rng.integers(0, 80, 8).tolist()
    scores[3] = 40 + number
    return shuffled([{"id": k, "score": score} for k, score in enumerate(scores)], rng)


@kind(lambda out: sum(row["status"] == "late" for row in out["orders"]), noise=count)
def records_with_status(number: int, rng: Rng) -> Any:
    """Number of records with a status, in a list of records with random ids."""
    late = between(0, 3 + number, 10)
    status = shuffled(["late"] * late + ["sent"] * (10 - late), rng)
    ids = rng.integers(0, 10**6, 10).tolist()
    orders = [{"order": i, "status": s} for i, s in zip(ids, status, strict=True)]
    return {"orders": orders, "page": int(rng.integers(1, 99))}


@kind(lambda out: len(out["users"]), noise=count)
def document_list_length(number: int, rng: Rng) -> Any:
    """Length of a list inside a document."""
    users = sample(KEYS, between(0, 6 + number, 20), rng)
    return {"users": users, "token": letters(10, rng)}


@kind(lambda out: json.loads(out)["n"], noise=count)
def document_as_text(number: int, rng: Rng) -> Any:
    """A value in a JSON document that is released as text."""
    size = int(rng.integers(3, 12))
    return json.dumps({"run": letters(size, rng), "n": 20 + number, "mean": float(rng.random())})


@kind(lambda out: out.count("\n"), noise=count)
def csv_as_text(number: int, rng: Rng) -> Any:
    """Number of lines of a CSV file that is released as text."""
    numbers = rng.integers(0, 10**4, (between(1, 8 + number, 30), 3)).tolist()
    return "\n".join(",".join(map(str, row)) for row in [["a", "b", "c"], *numbers])


# --- trees, rankings, graphs


def depth(tree: Any) -> int:
    """Depth of nested lists."""
    return 1 + max(map(depth, tree), default=0) if isinstance(tree, list) else 0


def leaves(tree: Any) -> int:
    """Number of items in nested lists."""
    return sum(map(leaves, tree)) if isinstance(tree, list) else 1


@kind(depth, noise=count)
def tree_depth(number: int, rng: Rng) -> Any:
    """Depth of a tree of nested lists."""
    tree: list[Any] = rng.integers(0, 100, 2).tolist()
    for _ in range(between(0, 3 + number, 12)):
        tree = shuffled([tree, *rng.integers(0, 100, int(rng.integers(0, 3))).tolist()], rng)
    return tree


@kind(leaves, noise=count)
def tree_leaves(number: int, rng: Rng) -> Any:
    """Number of leaves of a tree of random shape."""
    parts: list[Any] = rng.integers(0, 100, between(2, 10 + number, 30)).tolist()
    while len(parts) > 3:  # join a few neighbours into a subtree
        start, size = int(rng.integers(0, len(parts) - 1)), int(rng.integers(2, 4))
        parts = [*parts[:start], parts[start : start + size], *parts[start + size :]]
    return parts


@kind(lambda out: dict(out).get("k7", 0), noise=count)
def heavy_hitters_count(number: int, rng: Rng) -> Any:
    """Count of a key in a list of keys and counts, largest first."""
    counts = histogram(10, rng) | {"k7": 15 + number}
    return sorted(counts.items(), key=lambda item: -item[1])


@kind(lambda out: any(key == "k7" for key, _ in out))
def heavy_hitters_key(bit: int, rng: Rng) -> Any:
    """Presence of a key in a list of keys and counts, largest first."""
    keys = sample(OTHERS[:40], 10 - bit, rng) + ["k7"] * bit
    counts = zip(keys, rng.integers(1, 30, 10).tolist(), strict=True)
    return sorted(counts, key=lambda item: -item[1])


@kind(lambda out: out.index("k3") < out.index("k7"))
def ranking_order(bit: int, rng: Rng) -> Any:
    """Which of two items is ranked higher."""
    ranking = shuffled(KEYS[:20], rng)
    places = sorted((ranking.index("k3"), ranking.index("k7")), reverse=not bit)
    ranking[places[0]], ranking[places[1]] = "k3", "k7"
    return ranking


@kind(lambda out: out.index("k7"), noise=count)
def ranking_position(number: int, rng: Rng) -> Any:
    """Rank of an item."""
    ranking = sample(OTHERS[:14], 14, rng)
    ranking.insert(between(0, 6 + number, 14), "k7")
    return ranking


@kind(lambda out: out[0])
def ranking_first(bit: int, rng: Rng) -> Any:
    """First of the ten best items."""
    rest = sample(OTHERS[:30], 9, rng)
    rest.insert(0 if bit else int(rng.integers(1, 10)), "k7")
    return rest


def edges(density: float, vertices: int, rng: Rng) -> list[tuple[int, int]]:
    """Edges of a random graph."""
    pairs = list(itertools.combinations(range(vertices), 2))
    return [
        pair for pair, u in zip(pairs, rng.random(len(pairs)).tolist(), strict=True) if u < density
    ]


@kind(lambda out: sum(0 in edge for edge in out), noise=count)
def graph_degree(number: int, rng: Rng) -> Any:
    """Degree of a vertex in a list of edges."""
    rest = [edge for edge in edges(0.3, 14, rng) if 0 not in edge]
    mine = [(0, other) for other in sample(range(1, 14), between(0, 4 + number, 13), rng)]
    return shuffled(rest + mine, rng)


@kind(lambda out: (2, 5) in out)
def graph_edge(bit: int, rng: Rng) -> Any:
    """Presence of an edge in a list of edges."""
    return shuffled(list({*edges(0.3, 12, rng)} - {(2, 5)}) + [(2, 5)] * bit, rng)


def triangles(graph: list[tuple[int, int]]) -> int:
    """Number of triangles of a graph."""
    found = {frozenset(edge) for edge in graph}
    near: dict[int, set[int]] = {}
    for one, two in graph:
        near.setdefault(one, set()).add(two)
        near.setdefault(two, set()).add(one)
    return sum(len(near[one] & near[two]) for one, two in map(tuple, found)) // 3


@kind(triangles)
def graph_triangles(bit: int, rng: Rng) -> Any:
    """Whether a graph with random labels has a triangle."""
    label = shuffled(list(range(12)), rng)
    two_sided = {edge for edge in edges(0.5, 12, rng) if edge[0] < 6 <= edge[1]}
    graph = sorted(two_sided | {(0, 6), (1, 6)}) + [(0, 1)] * bit
    return shuffled([(label[one], label[two]) for one, two in graph], rng)
