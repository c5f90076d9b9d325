"""Log to MLflow: one run for each model × target, and the host's library as a model that can be served."""

from .track import TrackedRun, TrackResult, track

__all__ = ["TrackResult", "TrackedRun", "track"]
