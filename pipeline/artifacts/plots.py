"""Write the data of DVC's plots: `dvc plots show` and `dvc plots diff` draw them, as dvc.yaml declares.

ram.json                       ram of each model @ target
time/MODEL/TARGET.json         ram of each candidate of the search against its time
history/MODEL/TARGET.json      ram over the commits that changed it
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..report.results import Results
from ..support.text_files import write_text

#: where the stage `report` writes them, relative to the repo
PLOTS = Path("out") / "report" / "plots"


def write_plots(results: Results, folder: Path) -> None:
    """Write the files into `folder`; sizes are bytes, times cycles of the model or milliseconds. Raises OutputError."""
    from ..report.html.charts import history_rows, tradeoff_points

    _write(
        folder / "ram.json",
        [
            {"result": result.name, "ram": result.footprint.best.ram, "flash": result.footprint.best.flash}
            for result in results.results
        ],
    )
    for result in results.results:
        model, target = result.pair
        points, unit = tradeoff_points(result)
        if points:
            found = [
                {"time": each["time"], "unit": unit, "ram": each["ram"], "candidate": each["candidate"]}
                for each in points
            ]
            _write(folder / "time" / model / f"{target}.json", found)
        rows = history_rows(results.history, result)
        past = [{"number": n, "commit": each["commit"], "ram": each["ram"]} for n, each in enumerate(rows)]
        _write(folder / "history" / model / f"{target}.json", past)
    (folder / "time").mkdir(exist_ok=True)  # DVC wants it where no search weighed ram against time, too


def _write(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
