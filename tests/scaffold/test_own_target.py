from __future__ import annotations

import pytest
from typer.testing import CliRunner

from passfit.cli.app import app
from passfit.errors import ConfigError, TargetError
from passfit.scaffold import add_own_target, add_to_repo, init_repo
from passfit.targets.catalogue import get_target

from .test_init import repo, write_model  # noqa: F401


@pytest.fixture
def made(repo):  # noqa: F811
    write_model(repo / "a.onnx")
    init_repo(repo, ["a.onnx"], ["x86-64"])
    return repo


def test_it_has_the_facts_of_another_but_for_the_sizes_given(made):
    before = (made / "params.yaml").read_text()
    add_own_target(made, "our-box", "rpi4", ram="512MiB")
    add_own_target(made, "small-box", "our-box", flash="4096")
    assert (made / "params.yaml").read_text().startswith(before), "every other byte stays"
    box, small, rpi4 = (get_target(name, made) for name in ("our-box", "small-box", "rpi4"))
    assert (box.ram, box.flash, box.cpu, box.triple) == (512 << 20, rpi4.flash, rpi4.cpu, rpi4.triple)
    assert (small.ram, small.flash) == (512 << 20, 4096)
    add_to_repo(made, targets=["our-box"])


def test_a_microcontroller_keeps_its_memories_but_for_the_size(made):
    add_own_target(made, "our-board", "stm32f446", ram="64KiB")
    board, base = get_target("our-board", made), get_target("stm32f446")
    assert board.ram == 64 << 10 and [each.start for each in board.memories] == [each.start for each in base.memories]


@pytest.mark.parametrize(
    ("name", "like", "ram", "error", "message"),
    [
        ("rpi4", "rpi4", None, ConfigError, "already"),
        ("Our Box", "rpi4", None, ConfigError, "a-z"),
        ("our-box", "rpi-4", None, TargetError, "Did you mean 'rpi4'"),
        ("our-box", "rpi4", "lots", ConfigError, "not a size"),
        ("our-box", "rpi4", "0", ConfigError, "0 bytes"),
        ("our-box", "stm32h743", "64KiB", ConfigError, "several memories of ram: axi-sram, "),
    ],
)
def test_bad_input_writes_nothing(made, name, like, ram, error, message):
    before = (made / "params.yaml").read_text()
    with pytest.raises(error, match=message):
        add_own_target(made, name, like, ram)
    assert (made / "params.yaml").read_text() == before


def test_the_command_says_what_is_next(made):
    done = CliRunner().invoke(app, ["targets", "--add", "our-box", "--like", "rpi4"])
    assert done.exit_code == 0 and "Next: `passfit add --target our-box`." in done.output
    assert isinstance(CliRunner().invoke(app, ["targets", "--ram", "1MiB"]).exception, ConfigError)
