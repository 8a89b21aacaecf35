"""Pages are run as they are pasted from the site: the text of its code blocks, without markup."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

SCRIPT = runpy.run_path(str(Path(__file__).parents[1] / "scripts" / "pages_alone.py"))

PAGE = """<html><body><button class="copybtn"><pre>Copy</pre></button>
<div class="highlight-python notranslate"><div class="highlight"><pre><span></span>
<span class="nb">print</span><span class="p">(</span><span class="mi">1</span> &lt; 2)
</pre></div></div>
<div class="highlight-text notranslate"><div class="highlight"><pre>$ not run
</pre></div></div>
<div class="literal-block-wrapper"><div class="highlight-console notranslate"><div
 class="highlight"><pre><span class="gp">$ </span>echo<span class="w"> </span>&#39;a  b&#39;
<span class="go">a  b</span>
</pre><button data-clipboard-text="$ no">Copy</button></div></div></div>
</body></html>"""


def test_the_text_of_blocks_has_no_markup(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(PAGE, encoding="utf-8")
    python, console = SCRIPT["blocks_of"](page)
    assert python == ("python", "\nprint(1 < 2)\n")
    assert console == ("console", "$ echo 'a  b'\na  b\n")
    assert SCRIPT["differences"](console[1]) is None
    assert "+a  b" in SCRIPT["differences"](console[1].replace("\na  b", "\na b"))


@pytest.mark.parametrize("written", ["```console\n$ true\n```\n", ""])
def test_a_site_that_lost_a_block_is_refused(tmp_path: Path, written: str) -> None:
    source, page = tmp_path / "page.md", tmp_path / "page.html"
    source.write_text(written, encoding="utf-8")
    page.write_text("<pre>$ true</pre>", encoding="utf-8")
    with pytest.raises(SystemExit, match="it has the blocks"):
        SCRIPT["run_page"](source, page)
