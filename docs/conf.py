"""The documentation site; ``sh scripts/docs.sh`` builds it, in English and in Chinese."""

import os
import re
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.pycode import ModuleAnalyzer
from sphinx.search import zh
from sphinx.util import logging
from sphinx.util.inspect import TypeAliasForwardRef
from sphinx_click.ext import ClickDirective

import tensorsplit
from tensorsplit.cli.language import translated
from tensorsplit.core.errors import DOCUMENTATION

project = "tensorsplit"
author = "the tensorsplit developers"
copyright = author  # noqa: A001 - Sphinx reads this name
version = release = tensorsplit.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_templates"]
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(?!tensorsplit\.).*"),  # other libraries: no network is needed
    ("py:class", r"tensorsplit\.arrays\.typed\..*"),  # what stands for any type of array
    ("py:class", r"tensorsplit\..*\._\w+"),  # private base classes
    ("py:class", r"tensorsplit\.arrays\.dialect_calls\..*"),  # the function that `like` returns
]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3  # links to headings, spelled as on GitHub
default_role = "literal"  # in docstrings `x` is code
autodoc_mock_imports = ["torch"]  # its layers are documented where it is not installed, too
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"
autodoc_type_aliases = {
    name: name
    for name in (
        *(
            "Axis",
            "DialectName",
            "DialectOperand",
            "Dim",
            "Engine",
            "EngineName",
            "Flag",
            "GivenShape",
        ),
        *("KeepDims", "Lengths", "Like", "ModelLike", "Named", "NamedOut", "OperatorName", "Out"),
        *("OutWhole", "Shape", "Target"),
    )
}
"""Types that are written by their names."""
TypeAliasForwardRef.__repr__ = lambda alias: alias.name  # in unions too

python_use_unqualified_type_names = True
smartquotes = False  # a quote is typed as it is: options are copied
copybutton_prompt_text = r"\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = project
html_baseurl = DOCUMENTATION
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_search_scorer = str(Path(__file__).with_name("scorer.js"))
templates_path = ["_templates"]
html_sidebars = {"index": [], "install": []}
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": project},
    "navbar_end": ["language", "theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

TRANSLATED = (
    *("index", "install", "why", "guides", "reference", "project"),
    *("quickstarts/", "operators/", "command-line/"),
    *("models", "check", "portable", "exactness", "openvino-extensions", "explain"),
    *("splitting", "seven-into-three", "arrays", "arrays-torch", "arrays-tensorflow", "buffers"),
    *("files", "files-checkpoint", "files-cluster", "files-dcp", "files-zarr"),
    *("engines", "add-an-engine", "glossary", "errata", "limits"),
)
"""The pages and folders that are in Chinese too."""


def is_translated(page: str) -> bool:
    """Return whether a page is in Chinese too."""
    folder, slash, _ = page.partition("/")
    return folder + slash in TRANSLATED


locale_dirs = ["locale"]
gettext_compact = True  # one catalogue for each folder
gettext_location = False  # catalogues change only where their texts do


def report_untranslated(app: Sphinx, doctree: nodes.document) -> None:
    """Warn of each text of a translated page whose translation is missing, fuzzy or out of date."""
    page = app.env.current_document.docname
    if app.config.language == "en" or not is_translated(page):
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


def say_what_is_not_translated(app: Sphinx, doctree: nodes.document) -> None:
    """Begin a page that is in English only with a note that says so, in Chinese."""
    page = app.env.current_document.docname
    title = next(iter(doctree.findall(nodes.title)), None)
    if app.config.language == "en" or is_translated(page) or title is None:
        return
    text = nodes.paragraph("", "本页尚未翻译，内容为英文。")
    title.parent.insert(title.parent.index(title) + 1, nodes.note("", text, language="zh"))


def describe(
    _: Sphinx, __: str, ___: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Give a page the description that search engines show: its first paragraph."""
    paragraphs = [] if doctree is None else doctree.findall(nodes.paragraph)
    for text in (" ".join(paragraph.astext().split()) for paragraph in paragraphs):
        if len(text) >= 30:
            short = text if len(text) <= 160 else text[:160].rpartition(" ")[0] + "..."
            context["metatags"] += f'<meta name="description" content="{escape(short)}">'
            return


_ARROW = re.compile(r'(?<=>)([^<>"]+)</a>\s*(<details[^>]*>)\s*<summary>')


def name_toggles(
    _: Sphinx, __: str, ___: str, context: dict[str, Any], ____: nodes.document | None
) -> None:
    """Name each arrow of the navigation, for screen readers, after the page that it belongs to."""
    generate = context["generate_toctree_html"]

    def generate_named(kind: str, **options: Any) -> Any:
        tree = generate(kind, **options)
        return (
            _ARROW.sub(r'\1</a>\2<summary aria-label="\1">', str(tree))
            if kind == "sidebar"
            else tree
        )

    context["generate_toctree_html"] = generate_named


def show_one_signature() -> None:
    """Document each function once: overloads are for type checkers."""
    analyze = ModuleAnalyzer.analyze

    def analyze_without_overloads(self: ModuleAnalyzer) -> None:
        analyze(self)
        self.overloads.clear()

    ModuleAnalyzer.analyze = analyze_without_overloads  # type: ignore[method-assign]


def mark_drawings(_: Sphinx, doctree: nodes.document) -> None:
    """Let blocks with lines drawn in them scroll; other console blocks are folded."""
    for block in doctree.findall(nodes.literal_block):
        if "─" in block.astext():
            block["classes"].append("drawing")


def escape_stars(_: Sphinx, __: object, lines: list[str]) -> None:
    """Keep the patterns in the help of options from being read as emphasis."""
    lines[:] = [line.replace("*", r"\*") for line in lines]


def show_examples(_: Sphinx, context: click.Context, lines: list[str]) -> None:
    """Add the examples of a command, which end its help, to its usage."""
    help_lines = (context.command.epilog or "").splitlines()
    commands = [f"   {line.strip()}" for line in help_lines if "tensorsplit " in line]
    if commands:
        lines += ["", ".. rubric:: Examples", "", ".. code-block:: sh", "", *commands, ""]


def omit(_: Sphinx, __: object, lines: list[str]) -> None:
    """Leave out a part of the help of a command, which is elsewhere on the page."""
    lines.clear()


class Command(ClickDirective):
    """The help of a command, below the title of its page."""

    def run(self) -> list[nodes.Node]:
        """Return what is below the title that the directive would give it."""
        (section,) = super().run()
        for text in section.findall(nodes.paragraph):
            text["translatable"] = False  # it is in the catalogue of the command
        return section.children[1:]

    def _load_module(self, module_path: str) -> click.Command:
        """Return a command, whose help is translated and names values as in a terminal."""
        command: click.Command = super()._load_module(module_path)
        command.help = translated(command.help or "")
        for option in command.params:
            if isinstance(option, click.Option):
                option.help = translated(option.help or "")
            if option.metavar is None:
                choice = isinstance(option.type, click.Choice)
                option.metavar = option.opts[-1].strip("-") if choice else option.type.name.upper()
        return command


def choose_language(_: Sphinx, config: Config) -> None:
    """Let the help of the command be in the language of the site."""
    os.environ["TENSORSPLIT_LANG"] = config.language


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
    app.connect("config-inited", choose_language)
    app.connect("doctree-read", report_untranslated)
    app.connect("doctree-read", mark_drawings)
    app.connect("doctree-read", say_what_is_not_translated)
    app.connect("html-page-context", describe)
    app.connect("html-page-context", name_toggles, priority=900)  # after the theme's own
    show_one_signature()
    app.connect("sphinx-click-process-options", escape_stars)
    app.connect("sphinx-click-process-usage", show_examples)
    app.connect("sphinx-click-process-arguments", omit)
    app.connect("sphinx-click-process-epilog", omit)
    app.add_directive("click", Command, override=True)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
