"""Formatting differences between two files are refused, differences of outputs are not."""

import numpy as np
import pytest
from tests.helpers import csv_of

import dpassay as dp
from dpassay.errors import UnreadableFile
from dpassay.sampling.files import read_pair

RNG = np.random.default_rng(3)
P, Q = RNG.laplace(size=(2, 2000))


@pytest.fixture
def lines(tmp_path):
    """Two files, by default of one column, a row a line."""

    def to(*sides, header="x"):
        paths = [tmp_path / f"{name}.csv" for name in "pq"]
        for path, cells in zip(paths, sides, strict=True):
            path.write_text("\n".join([header, *map(str, cells)]) + "\n")
        return paths

    return to


@pytest.mark.parametrize(
    ("how", "other", "words"),
    [
        ("{:.2f}", "{:.3f}", "up to 2 decimals in p.csv and numbers of up to 3 decimals in q.csv"),
        ("{:.3f}", "{!r}", "up to 3 decimals in p.csv and numbers of full precision in q.csv"),
        ("{:.1f}", "{!r}", "up to 1 decimals in p.csv and numbers of full precision"),
        ("{:.0f}", "{!r}", "up to 0 decimals in p.csv and numbers of full precision"),
        ("{:.10f}", "{!r}", "up to 10 decimals in p.csv and numbers of full precision"),
        ("{:.10g}", "{!r}", "up to 10 .* in p.csv and numbers of full precision"),
        ("{:.2e}", "{:.5e}", "up to [0-9]+ (decimals|significant digits) in p.csv"),
    ],
)
def test_numbers_of_fewer_digits_in_one_file_are_refused(lines, how, other, words):
    numbers = 100 * P, 100 * Q
    for flip in (1, -1):
        written = [
            [way.format(float(x)) for x in side]
            for way, side in zip((how, other)[::flip], numbers, strict=True)
        ]
        with pytest.raises(
            UnreadableFile, match=words if flip == 1 else "would look like a violation"
        ):
            read_pair(*lines(*written))
    same = [[how.format(float(x)) for x in side] for side in numbers]
    read_pair(*lines(*same))


def test_rounded_arrays_in_npy_files_are_refused_too(tmp_path):
    paths = [tmp_path / "p.npy", tmp_path / "q.npy"]
    for path, values in zip(paths, (np.round(P, 1), Q), strict=True):
        np.save(path, values)
    with pytest.raises(UnreadableFile, match="up to 1 decimals in p.npy"):
        dp.from_samples(*paths)
    assert len(dp.from_samples(np.round(P, 1), Q).p) == 2000  # as arrays they are outputs


def test_what_is_rare_or_coarse_itself_is_an_output(lines):
    clipped = [np.clip(side, 0, 1) for side in (P, Q)]
    read_pair(*lines(np.round(clipped[0]), clipped[1][clipped[1] > -1]))  # two values only
    mostly = np.where(np.arange(2000) % 10 == 0, Q, np.round(Q, 1))  # a tenth in full
    read_pair(*lines(np.round(P, 1), mostly))


def test_full_precision_of_another_size_is_full_precision(lines):
    for scale in (1e-3, 1e3, 1e6, 1e9, 1e14):
        read_pair(*lines((P * scale).tolist(), Q.tolist()))


def test_narrow_floats_and_their_text_are_the_same(tmp_path, lines):
    narrow = P.astype(np.float32)
    path = tmp_path / "narrow.npy"
    np.save(path, narrow)
    _, text = lines([0], Q.astype(np.float32))
    read_pair(path, text)
    _, text = lines([0], np.round(Q, 2))
    with pytest.raises(
        UnreadableFile, match="of full precision in narrow.npy and numbers of up to 2"
    ):
        read_pair(path, text)


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ("", "NaN", "holds an empty cell where there is no number in p.csv and NaN in q.csv"),
        ("NA", "nan", "an empty cell .* NaN"),
        ("", "-", "an empty cell .* '-'"),
        ("NaN", "suppressed", "NaN .* 'suppressed'"),
        ("n.a.", "suppressed", "'n.a.' .* 'suppressed'"),
    ],
)
def test_two_ways_of_writing_that_there_is_no_number_are_refused(lines, first, second, words):
    def holes(side, mark):
        return [mark if k % 20 == 3 else round(float(x), 3) for k, x in enumerate(side)]

    for flip in (1, -1):
        one, two = (first, second)[::flip]
        with pytest.raises(UnreadableFile, match=words if flip == 1 else "no number"):
            read_pair(*lines(holes(P, one), holes(Q, two)))
    read_pair(*lines(holes(P, first), holes(Q, first)))
    read_pair(*lines(holes(P, first), np.round(Q, 3)))  # an outcome of one input alone
    both = holes(Q, first)
    both[5] = second
    read_pair(*lines(holes(P, first), both))


def test_a_nan_in_an_array_and_a_blank_cell_are_refused(tmp_path):
    holes = np.where(np.arange(2000) % 20 == 3, np.nan, np.round(P, 3))
    np.save(tmp_path / "p.npy", holes)
    (tmp_path / "q.csv").write_text(
        csv_of({"x": [None if k % 20 == 3 else round(float(x), 3) for k, x in enumerate(Q)]})
    )
    with pytest.raises(UnreadableFile, match="NaN where there is no number in p.npy and an empty"):
        read_pair(tmp_path / "p.npy", tmp_path / "q.csv")


def test_words_that_differ_in_capitals_alone_are_refused(lines):
    p, q = RNG.choice(["yes", "no"], (2, 300))
    with pytest.raises(UnreadableFile, match="holds 'no' in p.csv and 'No' in q.csv"):
        read_pair(*lines(p, [word.title() for word in q]))
    read_pair(*lines(p, q))
    q[3] = "Yes"  # rare: an output of its own
    read_pair(*lines(p, q))
    letters = list("aAbBcC")
    read_pair(*lines(RNG.choice(letters, 300), RNG.choice(letters, 300)))


def test_one_long_row_is_told_from_many_outputs(tmp_path):
    for name, values in (("p", P), ("q", Q)):
        np.save(tmp_path / f"{name}.npy", values[None, :])
    with pytest.raises(UnreadableFile, match=r"shape \(1, 2000\).*save array.ravel\(\)"):
        read_pair(tmp_path / "p.npy", tmp_path / "q.npy")


LAWS = {
    "heavy tails": lambda rng, n: rng.standard_cauchy(n),
    "many sizes": lambda rng, n: rng.lognormal(0, 10, n),
    "sevenths": lambda rng, n: rng.integers(-50, 50, n) / 7,
    "multiples of 2^-10": lambda rng, n: np.round(rng.normal(size=n) * 1024) / 1024,
    "tiny": lambda rng, n: rng.normal(size=n) * 1e-300,
    "huge": lambda rng, n: rng.normal(size=n) * 1e200,
    "clipped": lambda rng, n: np.clip(rng.normal(size=n), -0.5, 0.5),
    "half rounded": lambda rng, n: np.where(
        rng.random(n) < 0.5, np.round(rng.normal(size=n), 2), rng.normal(size=n)
    ),
    "powers of two": lambda rng, n: 2.0 ** -rng.integers(0, 40, n),
    "shares": lambda rng, n: rng.binomial(1000, 0.3, n) / 1000,
    "mostly whole": lambda rng, n: np.where(
        rng.random(n) < 0.9, rng.integers(0, 100, n), rng.normal(size=n)
    ),
}


@pytest.mark.parametrize("law", LAWS)
def test_draws_of_one_law_are_never_taken_for_two_ways_of_writing(law, tmp_path, seeds):
    for seed in seeds[:6]:
        rng = np.random.default_rng(seed)
        for sizes in ((150, 3000), (1000, 1000)):
            for name, n in zip("pq", sizes, strict=True):
                np.save(tmp_path / f"{name}.npy", LAWS[law](rng, n))
            read_pair(tmp_path / "p.npy", tmp_path / "q.npy")


def test_a_whole_number_that_no_double_holds_is_an_output_like_others(lines):
    sides = [[10**400, *np.round(side[:200], 3)] for side in (P, Q)]
    assert dp.from_samples(*lines(*sides)).remaining == (201, 201)
