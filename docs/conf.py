"""Sphinx settings: `make docs`."""

import re
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "cloakgp"
version = release = installed_version("cloakgp")
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "command_line_reference",
    "mathml",
]
exclude_patterns = ["_build", "gallery", "generated/gallery/*.ipynb", "generated/gallery/*.json"]
templates_path = ["_templates"]
myst_enable_extensions = ["amsmath", "dollarmath"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say it in words
autodoc_default_options = {"members": True, "inherited-members": True}
napoleon_google_docstring = False
napoleon_use_param = False  # words such as "columns of X" are no types to link to
napoleon_use_rtype = False
napoleon_use_ivar = True
add_module_names = False
toc_object_entries_show_parents = "hide"

smartquotes_action = "qe"  # no dashes: --option stays as it is

html_theme = "furo"
html_title = "cloakgp"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_math_renderer = "mathml"  # made at build time: no page asks another host for anything
pygments_style = "friendly"
pygments_dark_style = "github-dark"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#00527d", "color-brand-content": "#00527d"},
    "dark_css_variables": {"color-brand-primary": "#6cb6e6", "color-brand-content": "#6cb6e6"},
}

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "generated/gallery",
    "filename_pattern": r"\.py$",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "capture_repr": (),
    "min_reported_time": 1e9,
    "within_subsection_order": "FileNameSortKey",
}


def setup(app):
    app.connect("autodoc-process-docstring", _as_rst)
    app.connect("autodoc-skip-member", _only_ours)


def _as_rst(_app, _what, _name, _object, _options, lines):
    """In docstrings |x| is a size, where Sphinx would see a substitution, and docs/x.md is a page."""
    lines[:] = [_PAGE.sub(r":doc:`/\1`", line.replace("|", r"\|")) for line in lines]


_PAGE = re.compile(r"``docs/([\w-]+)\.md``")


def _only_ours(_app, _what, _name, member, skip, _options):
    """What a class has from scikit-learn or from Python is documented there."""
    inner = getattr(member, "fget", None) or getattr(member, "func", None) or member
    home = getattr(inner, "__module__", None) or "cloakgp"
    return skip or not home.startswith("cloakgp")


# Names of attributes that several classes have, such as X, cannot be linked to one of them.
suppress_warnings = ["ref.python"]
