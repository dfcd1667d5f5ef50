"""What is said while draws are made."""

from tests.helpers import laplace_mechanism

import dpassay as dp

PAIR = (0.0, 1.0)


def test_off_a_terminal_a_line_comes_now_and_then(monkeypatch, capsys):
    monkeypatch.setattr("dpassay.sampling.progress.FIRST_LINE", 0.0)
    dp.draw(laplace_mechanism, PAIR, n=200_000, rng=0)
    said = capsys.readouterr().err
    assert "dpassay: drawing, 65,536 of 200,000 draws" in said
    dp.draw(laplace_mechanism, PAIR, n=200_000, rng=0, sampling=dp.Sampling(progress=False))
    assert capsys.readouterr().err == ""
