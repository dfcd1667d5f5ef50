"""What the benchmarks measure can be built: a table that cannot be made again is no evidence."""

from benchmarks.quality import PAPERS, broken_and_twins, one_of_matrix


def test_every_method_answers_for_the_mechanisms_of_the_matrix():
    cells = broken_and_twins()
    assert {broken for _, _, _, broken in cells} == {False, True}
    for method in PAPERS:
        assert one_of_matrix(0, method, 0, 400) in (True, False, None)
