"""Write dvc.yaml and params.yaml of a model repo from templates: `passfit init`, `add` and `remove`.

Public faces: `init_repo`, `add_to_repo`, `remove_from_repo`, `check_models`, `check_watched`, and the renderers in `__all__`.
"""

from .add import add_to_repo
from .dvc_file import check_models, check_watched
from .init import init_repo
from .remove import remove_from_repo
from .render import model_file, render_dvc_yaml, render_params_yaml

__all__ = [
    "add_to_repo", "check_models", "check_watched", "init_repo", "model_file", "remove_from_repo", "render_dvc_yaml", "render_params_yaml",
]  # fmt: skip
