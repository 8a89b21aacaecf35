"""The documentation site; ``sh scripts/docs.sh`` builds it, in English and in Chinese."""

import re
from itertools import pairwise
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.search import zh
from sphinx.util import logging

import tensorsplit
from tensorsplit.core.errors import DOCUMENTATION

project = "tensorsplit"
author = "the tensorsplit developers"
copyright = author  # noqa: A001 - Sphinx reads this name
version = release = tensorsplit.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_templates"]
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(?!tensorsplit\.).*"),  # other libraries: no network is needed
    ("py:class", r"tensorsplit\.arrays\.typed\..*"),  # what stands for any type of array
]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3  # links to headings, spelled as on GitHub
default_role = "literal"  # in docstrings `x` is code
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
copybutton_prompt_text = r"\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = project
html_baseurl = DOCUMENTATION
html_static_path = ["_static"]
html_css_files = ["site.css"]
templates_path = ["_templates"]
html_sidebars = {"index": []}
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": project},
    "navbar_end": ["language", "theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": False,
    "navigation_with_keys": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

TRANSLATED = ("index", "guides", "reference", "project", "quickstarts/", "operators/")
"""What is in Chinese too."""

locale_dirs = ["locale"]
gettext_compact = True  # one catalogue for each folder
gettext_location = False  # catalogues change only where their texts do


def report_untranslated(app: Sphinx, doctree: nodes.document) -> None:
    """Warn of each text of a translated page whose translation is missing, fuzzy or out of date."""
    page = app.env.current_document.docname
    if app.config.language == "en" or not page.startswith(TRANSLATED):
        return
    texts = [
        node
        for node in doctree.findall(nodes.Element)
        if "translated" in node and not isinstance(node, nodes.image)  # Sphinx never marks these
    ]
    for node in texts or [doctree]:
        caption = node.get("caption")  # of a toctree: translated, but not marked
        if not node.get("translated") and caption == node.get("rawcaption"):
            text = caption or node.astext()
            logging.getLogger(__name__).warning("not translated: %.60s", text, location=page)


def mark_drawings(_: Sphinx, doctree: nodes.document) -> None:
    """Let blocks with lines drawn in them scroll; other console blocks are folded."""
    for block in doctree.findall(nodes.literal_block):
        if "─" in block.astext():
            block["classes"].append("drawing")


def escape_stars(_: Sphinx, __: object, lines: list[str]) -> None:
    """Keep the patterns in the help of options from being read as emphasis."""
    lines[:] = [line.replace("*", r"\*") for line in lines]


def show_examples(_: Sphinx, __: object, lines: list[str]) -> None:
    """Make a block of code of the examples below the help of a command."""
    commands = [f"   {line.strip('| ')}" for line in lines if "tensorsplit " in line]
    if commands:
        lines[:] = [".. code-block:: sh", "", *commands, ""]


class SearchChinese(zh.SearchChinese):
    """Search in Chinese by all pairs of neighbouring characters, which needs no dictionary."""

    language_name = "English"  # of the stemmer: sphinx-doc/sphinx#14229
    js_splitter_code = r"""
var splitQuery = (query) =>
  (query.match(/[a-zA-Z0-9_]+|[\u4e00-\u9fff]+/g) ?? []).flatMap((word) =>
    word < "\u4e00" ? [word] : Array.from(word.slice(1), (next, index) => word[index] + next),
  );
"""

    def split(self, input: str) -> list[str]:
        """The words and pairs of a text."""
        chinese = re.findall("[\u4e00-\u9fff]+", input)
        return super().split(input) + ["".join(pair) for run in chinese for pair in pairwise(run)]


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect what is our own."""
    app.add_search_language(SearchChinese)
    app.connect("doctree-read", report_untranslated)
    app.connect("doctree-read", mark_drawings)
    app.connect("sphinx-click-process-options", escape_stars)
    app.connect("sphinx-click-process-epilog", show_examples)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
