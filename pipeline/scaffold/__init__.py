"""Write dvc.yaml, params.yaml and CI files of a model repo from templates: `passfit init`, `add`, `remove`, `targets --add`.

Public faces: `init_repo`, `add_to_repo`, `remove_from_repo`, `add_own_target`, `write_ci`, `asked_stages`, the checks and the renderers
in `__all__`.
"""

from .add import add_to_repo
from .ci import check_service, write_ci
from .dvc_file import asked_stages, check_asked, check_models, check_watched
from .init import init_repo
from .own_target import add_own_target
from .remove import remove_from_repo
from .render import imported_file, render_dvc_yaml, render_params_yaml

__all__ = [
    "add_own_target", "add_to_repo", "asked_stages", "check_asked", "check_models", "check_service", "check_watched", "imported_file", "init_repo",
    "remove_from_repo", "render_dvc_yaml", "render_params_yaml", "write_ci",
]  # fmt: skip
