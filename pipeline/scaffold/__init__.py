"""`passfit init`: dvc.yaml and params.yaml for a model repo, from the templates this project uses itself."""

from .init import init_repo
from .render import model_file, render_dvc_yaml, render_params_yaml

__all__ = ["init_repo", "model_file", "render_dvc_yaml", "render_params_yaml"]
