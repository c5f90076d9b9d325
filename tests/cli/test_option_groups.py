"""The options of a search are said once: the commands and params.yaml have the defaults of the settings."""

from __future__ import annotations

from dataclasses import MISSING, fields

import pytest
import typer
from typer.testing import CliRunner

from passfit.cli.option_groups import DeviceOptions, SearchOptions, grouped
from passfit.params.latency_limit import LatencyLimit
from passfit.params.params import SearchParams, VerifyParams
from passfit.search.settings import SearchSettings
from passfit.verify.settings import VerifySettings


def test_a_search_without_options_has_the_defaults():
    assert SearchOptions().settings() == SearchSettings()


def test_options_reach_the_settings():
    app, seen = typer.Typer(), []

    @app.command()
    @grouped
    def command(model: str, device: DeviceOptions, search: SearchOptions, out: str = "here") -> None:
        seen.append((model, device, search.settings(), out))

    done = CliRunner().invoke(
        app,
        ["m", "--target", "t", "--no-splits", "--allow-lossy", "--seed", "3", "--max-latency", "1.5x", "--out", "o"],
    )
    assert done.exit_code == 0, done.output
    expected = SearchSettings(seed=3, lossy=True, max_extra_compute=None, max_latency=LatencyLimit(ratio=1.5))
    assert seen == [("m", DeviceOptions("t"), expected, "o")]


@pytest.mark.parametrize(("section", "settings"), [(SearchParams, SearchSettings), (VerifyParams, VerifySettings)])
def test_params_have_the_defaults_of_the_settings(section: type, settings: type):
    defaults = {each.name: each.default for each in fields(settings)}
    assert MISSING not in defaults.values()
    ours = dict(section())
    assert ours == {name: defaults[name] for name in ours}
