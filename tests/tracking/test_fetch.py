import pytest

from passfit.artifacts.read_results import results_in
from passfit.errors import ConfigError
from passfit.tracking.fetch import fetch_run, is_run


def test_a_tracked_run_is_read_back_as_a_result(repo, tmp_path):
    repo.result("a", "rpi4")
    run = repo.track().runs[0]
    assert is_run(run.run_id)
    folder = tmp_path / "fetched"
    folder.mkdir()
    fetch_run(repo.path, run.run_id, folder)
    found = results_in(folder)["a", "rpi4"]
    assert (found.footprint.best.ram, found.passes, found.saved) == (640, ("fold",), None)
    with pytest.raises(ConfigError, match="not found. Name a run that `passfit track` logged"):
        fetch_run(repo.path, "0" * 32, folder)


def test_asking_makes_no_store(repo, tmp_path):
    with pytest.raises(ConfigError, match="there is no MLflow store"):
        fetch_run(repo.path, "0" * 32, tmp_path)
    assert not (repo.path / "mlflow.db").exists()
    assert not is_run("main") and not is_run("0" * 40)
