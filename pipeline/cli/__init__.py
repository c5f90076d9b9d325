"""Hold the `passfit` command: parse arguments, call the api, print tables. Public face: `main`."""

from ..support.interrupts import interruptible

__all__ = ["main"]


def main() -> None:
    """Run the command, see `app.main`; a signal ends it while its modules are loaded, too."""
    with interruptible():
        from .app import main as run

        run()
