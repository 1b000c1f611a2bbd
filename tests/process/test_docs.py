"""The documentation against the code: anchors, links, examples, and the generated page."""

import os
import re
import subprocess

import pytest

from support import ROOT, WHERRY

TROUBLESHOOTING = ROOT / "docs" / "TROUBLESHOOTING.md"
PAGES = [
    page
    for pattern in ("*.md", "docs/*.md", "*/README.md", "src/*/README.md", "src/path/*/README.md")
    for page in sorted(ROOT.glob(pattern))
    if not page.is_relative_to(ROOT / "build")
]


def anchors(page):
    """The anchors of a page's headings, as they are made from their text."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


def error_codes():
    header = (ROOT / "include" / "wherry" / "error.hpp").read_text()
    body = header.split("enum class ErrorCode", 1)[1].split("};", 1)[0]
    return re.findall(r"^\s*(\w+) = \d+", body, re.MULTILINE)


def test_every_error_code_has_its_entry():
    codes = error_codes()
    assert len(codes) >= 22
    assert set(codes) <= anchors(TROUBLESHOOTING)


def test_every_anchor_that_the_command_names_is_there():
    named = set()
    for source in (ROOT / "cli").rglob("*.cpp"):
        named |= set(re.findall(r"docs/(\w+\.md)#([\w-]+)", source.read_text()))
        # "#{}" is filled with an error code: see above.
        assert not re.search(r"docs/(?!TROUBLESHOOTING\.md)\w+\.md#\{", source.read_text()), source
    assert named
    for page, anchor in named:
        assert anchor in anchors(ROOT / "docs" / page), f"docs/{page}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{page}: {target}"
        if anchor:
            assert anchor in anchors(linked), f"{page}: {target}"


def test_the_readme_shows_the_example_that_is_built():
    shown = re.findall(r"^```cpp\n(.*?)^```$", (ROOT / "README.md").read_text(), re.S | re.M)
    example = (ROOT / "examples" / "hello.cpp").read_text()
    assert len(shown) == 1
    assert example.endswith(shown[0])


def test_the_readme_fits_two_screens():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 100


def test_R1_the_capability_matrix_is_what_the_code_says():
    tool = ROOT / "tools" / "capability-matrix"
    result = subprocess.run(
        [str(tool), "--check"],
        env={**os.environ, "WHERRY": WHERRY},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert result.returncode == 0, result.stderr
