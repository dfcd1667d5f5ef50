"""The inside of text, against a slow oracle, and what an audit makes of it."""

import itertools
import math
import re
import string
import zlib

import numpy as np
import pytest
from tests.helpers import canonical, objects

import dpassay as dp
from dpassay.outputs.events import Event
from dpassay.outputs.representations import Characters, text_of

PAIR = (0, 1)
WORDS = ["", "a", "b", "ab", "abc", "abcd", "abcde", "ba" * 20, "x" * 127, "x" * 128, "x" * 129]
WORDS += [
    "y" * 300 + "z",
    "é",
    "ÿ",
    "Ā",
    "ā",
    "日本語",
    "🙂",
    "a🙂",
    "\ud800",
    "a\udfff",
    "a\0b",
    "\0",
]
BYTES = [b"", b"a", b"\xff\x00", b"abcdef"]


def slow_row(texts, leaves):
    """The codes of one output, by the words of the documentation: a text at a time."""
    row = []
    start = 32 if leaves == 1 else 6
    for leaf in range(leaves):
        text = texts[leaf] if leaf < len(texts) else ""
        row.append(zlib.crc32(text.encode("utf-8", "surrogatepass")) % 255 + 1)
        row.append(min(len(text), 255))
        row += [slow_code(text[k]) if k < len(text) else 0 for k in range(start)]
        row += [slow_code(text[-k]) if k <= len(text) else 0 for k in (4, 3, 2, 1)]
    if leaves == 1:
        found = [0] * 256
        text = texts[0] if texts else ""
        for one, other in itertools.pairwise(text[:128]):
            if other != "\0":
                found[(31 * ord(one) + ord(other)) % 256] = 1
        row += found
    return row


def slow_code(letter):
    return 1 + (ord(letter) if ord(letter) < 256 else 256 + ord(letter) % 255)


def as_text(item):
    """Zeros at the end are no part of an output: an array of text does not keep them."""
    return (item.decode("latin-1") if isinstance(item, bytes) else item).rstrip("\0")


@pytest.mark.parametrize("items", [WORDS, BYTES, WORDS[:4], ["", ""], [b"", "a"]], ids=len)
def test_rows_of_words(items):
    rows = Characters(1).rows(canonical(objects(*items)))
    assert rows.tolist() == [slow_row([as_text(item)], 1) for item in items]


def test_rows_of_random_words_of_any_characters(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 150, 40)
    words = ["".join(map(chr, rng.integers(1, 0x3000, n))) for n in lengths]
    rows = Characters(1).rows(canonical(objects(*words)))
    assert rows.tolist() == [slow_row([word], 1) for word in words]


def test_rows_of_lists_of_words():
    lists = [("ab", "c"), ("",), ("abcdefgh", "日本", "x" * 200), (), ("a", None, 1.5), ("é", "b")]
    characters = Characters(3)
    rows = characters.rows(canonical(objects(*lists)))
    texts = [[x if isinstance(x, str) else "" for x in one] for one in lists]
    assert rows.tolist() == [slow_row(one, 3) for one in texts]
    assert rows.shape[1] == 3 * (2 + 6 + 4)


def test_codes_depend_on_the_output_alone(seed):
    """Alone, in a block of short words or beside a long one: an event is a function of the output."""
    rng = np.random.default_rng(seed)
    all_of_them = Characters(1).rows(canonical(objects(*WORDS)))
    for k, word in enumerate(WORDS):
        alone = Characters(1).rows(canonical(objects(word)))
        assert alone[0].tolist() == all_of_them[k].tolist()
    some = rng.choice(len(WORDS), 8)
    block = Characters(1).rows(canonical(objects(*(WORDS[k] for k in some))))
    assert block.tolist() == all_of_them[some].tolist()


def test_text_of_leaves():
    assert [text_of(leaf) for leaf in [("str", "é"), ("bytes", "ff"), ("none",), ("number",)]] == [
        "é",
        "ÿ",
        "",
        "",
    ]


def test_leaves_are_learned_up_to_sixteen():
    def learned(*items):
        return Characters.learn(canonical(objects(*items)).structures).leaves

    assert learned("a", "b") == 1
    assert learned(("a", "b"), ("c",)) == 2
    assert learned(()) == 1
    assert learned(("a",) * 40) == 16


def test_words_say_what_holds():
    """The words of every code of an output are read and checked on the output."""
    for word in map(as_text, WORDS):
        characters = Characters(1)
        row = characters.rows(canonical(objects(word)))[0].tolist()
        for place in range(32):
            words = characters.words(2 + place, row[2 + place])
            assert said(words, f"character {place + 1} is ", word[place : place + 1])
        for back in (4, 3, 2, 1):
            words = characters.words(38 - back, row[38 - back])
            letter = word[-back] if back <= len(word) else ""
            assert said(words, f"character {back} from the end is ", letter)
        length = characters.words(1, row[1])
        assert length == f"the length is {min(len(word), 255)}{' or more' * (len(word) >= 255)}"
    assert Characters(2).words(12 + 2, ord("q") + 1) == "character 1 of item 2 is 'q'"
    assert Characters(1).words(38 + 7, 1) == "a pair of characters in group 7"
    assert Characters(1).words(38 + 7, 0) == "no pair of characters in group 7"


def said(words, start, letter):
    assert words.startswith(start)
    what = words.removeprefix(start)
    if not letter:
        return what == "missing"
    if ord(letter) >= 256:
        return what == f"one whose code is {ord(letter) % 255} modulo 255"
    return what == repr(letter)


# --- audits


def one_letter(x, n, rng):
    """Random words of eight letters; the third is a or b, the truth four times in five: ε = ln 4."""
    letters = rng.choice(list(string.ascii_lowercase), size=(n, 8))
    letters[:, 2] = np.where(rng.random(n) < 0.8, "ab"[x], "ba"[x])
    return ["".join(word) for word in letters.tolist()]


def test_randomized_response_on_a_letter_is_certified(seeds):
    verdict = dp.audit(one_letter, PAIR, "eps=.5", n=20_000, rng=seeds[0])
    assert 1.2 < verdict.lower_bound < math.log(4)
    words = verdict.witness.event.words
    letter = re.search(r"character 3 is '(.)'|contains? the character '(.)'", words)
    assert letter is not None  # without an a, or a b, the word is as telling as its third letter
    assert (letter[1] or letter[2]) in "ab"


def test_an_event_of_letters_comes_back_from_json_and_is_replayed(seed):
    verdict = dp.audit(one_letter, PAIR, "eps=.5", n=20_000, rng=seed)
    again = dp.Verdict.from_json(verdict.to_json())
    assert not again.witness.event.live
    outputs = dp.draw(one_letter, PAIR, n=1000, rng=seed + 1)
    for side in (outputs.p, outputs.q):
        same = Event.from_json(verdict.witness.event.to_json()).holds(side)
        assert np.array_equal(same, verdict.witness.event.holds(side))
    assert dp.replay(again, one_letter, n=5000, rng=seed + 2).lower_bound > 1.1


def test_words_that_tell_nothing_refute_nothing(seeds):
    def nothing(x, n, rng):
        letters = rng.choice(list(string.ascii_lowercase), size=(n, 8))
        return ["".join(word) for word in letters.tolist()]

    for loss in ("auto", "characters"):
        verdict = dp.audit(
            nothing, PAIR, "eps=0", n=4000, rng=seeds[0], loss=loss, confidence=0.9999
        )
        assert not verdict.violated


@pytest.mark.parametrize(
    "loss", ["kde", "categories", "linear", "logistic", "products", "boosting"]
)
def test_words_of_which_none_repeats_stop_no_ranking(loss, seed):
    def words(data, size, rng):
        letters = rng.integers(97, 123, size=(size, 12)).astype(np.uint8)
        return letters.view("S12").ravel().astype(str)

    verdict = dp.audit(words, (0, 1), "eps=1", n=1200, loss=loss, rng=seed)
    assert not verdict.violated
    assert verdict.blind


def test_estimates_look_into_words_too(seed):
    rng = np.random.default_rng(seed)

    def words(n, weights):
        letters = rng.choice(list("abcdefgh"), (n, 9), p=weights)
        return np.array(["".join(word) for word in letters])

    p, q = words(900, None), words(1000, [0.3] + [0.1] * 7)
    assert dp.estimate(dp.from_samples(p, q)).delta(0.0) > 0.3
    verdict = dp.audit(dp.from_samples(p, q), claim="eps=0.5")
    assert verdict.violated
    assert any(word in verdict.witness.event.words for word in ("character",))
