"""Options that commands share."""

import inspect

import pytest
import typer

from dpassay.cli import command_line, options
from dpassay.errors import InvalidInput

WHERE = [*inspect.signature(options.Where).parameters]
HOW = [*inspect.signature(options.How).parameters]
OUT = [*inspect.signature(options.Out).parameters]
#: What each command does without, of the options that go together.
WITHOUT = {
    "audit": set(),
    "monitor": set(),
    "bound": set(),
    "verify": set(),
    "estimate": {"pairs", "neighbours", "relation"},
    "replay": {"pair", "pairs", "neighbours", "relation", "errors_are_outputs"},
    "draw": {
        *("pairs", "neighbours", "relation", "samples", "store", "columns", "drop", "max_bytes"),
        *("decimal", "thousands", "encoding"),
        *("feature", "seed", "json", "report"),
    },
}


def parameters(command):
    return {
        one.name: one for one in typer.main.get_command(command_line.app).commands[command].params
    }


@pytest.mark.parametrize("command", WITHOUT)
def test_a_command_has_its_groups_in_order_around_its_own_options(command):
    names = [name for name in parameters(command) if name != "help"]
    where, how, out = (
        [n for n in group if n not in WITHOUT[command]] for group in (WHERE, HOW, OUT)
    )
    own = [name for name in names if name not in {*where, *how, *out}]
    first = ["verdict"] if command == "replay" else []
    assert names == [*first, *where, *(n for n in own if n not in first), *how, *out]
    assert "confidence" in own or command in ("estimate", "draw")


def test_an_option_means_the_same_everywhere():
    """Its help and its names, but for the commands that say more of it."""
    everywhere = {}
    for command in WITHOUT:
        for name, one in parameters(command).items():
            if name in {*WHERE, *HOW, *OUT} - WITHOUT[command]:
                everywhere.setdefault(name, set()).add((one.help, tuple(one.opts)))
    assert set(everywhere) == {*WHERE, *HOW, *OUT}
    assert all(len(said) == 1 for said in everywhere.values())


def test_defaults():
    assert parameters("audit")["seed"].default == 0
    assert parameters("replay")["seed"].default == 1  # draws of its own
    assert options.How().seed == 0


def test_a_command_without_an_option_refuses_it(capsys):
    assert command_line.run(["draw", "zoo:Laplace(1.0)", "--report", "page.html"]) == 2
    assert "--report" in capsys.readouterr().err


def test_what_is_claimed():
    box = typer.Typer()  # anything without a claim of its own
    with pytest.raises(InvalidInput, match='Give --claim "eps=1, delta=1e-5"'):
        options.claimed(box, None, "eps=1, delta=1e-5")
    assert options.claimed(box, "eps=2").epsilon == 2
    assert options.whole("2e4") == 20_000
