"""Sphinx's configuration of the documentation site; scripts/site runs it."""

import sys
from pathlib import Path

from latex2mathml.converter import convert

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
import triton  # noqa: E402
from triton.c.highlight import TritonCLexer  # noqa: E402

project, author = "tritonc", "the authors of tritonc"
version = release = triton.tritonc_version
extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"tritonc {version}"
html_copy_source = html_show_sourcelink = html_show_copyright = False
exclude_patterns = ["site"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
pygments_style = "friendly"
highlight_language = "none"
# Docstrings write `name` for a name.
default_role = "code"
suppress_warnings = ["myst.xref_missing"]


def _mathml(display):
    def visit(writer, node):
        from docutils.nodes import SkipNode

        writer.body.append(convert(node.astext(), display=display))
        raise SkipNode

    return visit


def setup(app):
    app.add_lexer("triton-c", TritonCLexer)
    app.add_html_math_renderer("mathml", (_mathml("inline"), None), (_mathml("block"), None))
