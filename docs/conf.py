"""Sphinx settings: `make docs`."""

from importlib.metadata import version as installed_version

project = "cloakgp"
version = release = installed_version("cloakgp")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["amsmath", "dollarmath"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say it in words
napoleon_google_docstring = False
html_show_copyright = False
html_theme_options = {"page_width": "1200px", "body_max_width": "none", "code_font_size": "0.78em"}


def setup(app):
    app.connect("autodoc-process-docstring", _plain_bars)


def _plain_bars(_app, _what, _name, _object, _options, lines):
    """In docstrings |x| is a size; Sphinx would take it for a substitution."""
    lines[:] = [line.replace("|", r"\|") for line in lines]


# Names of attributes that several classes have, such as X, cannot be linked to one of them.
suppress_warnings = ["ref.python"]
