"""Look at the built pages in a browser: none scrolls sideways on a phone, none asks another host.

    python docs/look.py [--shots folder [page ...]]

With --shots it takes pictures instead, of the pages named (`index`, `tutorial/index`, ...) or of all, at the
width of a phone and of a desk, light and dark.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

BUILD = Path(__file__).resolve().parent / "_build"
PHONE, DESK = 390, 1280
LEFT_OUT = ("_static", "_downloads", "_modules")
# What sticks out, if anything does: the page as a whole, or something that nothing lets scroll.
WIDER = """() => {
  const width = document.documentElement.clientWidth;
  const scrolls = (e) => e && e.tagName !== "ARTICLE"
    && (["auto", "scroll"].includes(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
  const all = [...document.querySelectorAll("article *")];
  const found = all.find((e) => e.getBoundingClientRect().right > width + 1 && !scrolls(e));
  if (found) return found.outerHTML.slice(0, 200);
  return document.scrollingElement.scrollWidth > width ? "something" : "";
}"""


def pages() -> list[Path]:
    return [path for path in sorted(BUILD.rglob("*.html")) if not set(LEFT_OUT) & set(path.parts)]


def look(browser, found):
    """Words for each page that is too wide, and for each request that leaves this machine."""
    context = browser.new_context(viewport={"width": PHONE, "height": 844})
    page, wrong = context.new_page(), []
    page.on("request", lambda request: request.url.startswith("file:") or wrong.append(request.url))
    for path in found:
        page.goto(path.as_uri(), wait_until="domcontentloaded")
        if sticking_out := page.evaluate(WIDER):
            wrong.append(f"{path.relative_to(BUILD)} is wider than {PHONE} px: {sticking_out}")
    context.close()
    return wrong


def shoot(browser, found, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for width in (DESK, PHONE):
        for scheme in ("light", "dark"):
            context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
            page = context.new_page()
            for path in found:
                page.goto(path.as_uri())
                name = str(path.relative_to(BUILD).with_suffix("")).replace("/", "-")
                page.screenshot(path=folder / f"{name}-{width}-{scheme}.png", full_page=True)
            context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shots", nargs="+", metavar=("FOLDER", "PAGE"), default=[])
    shots = parser.parse_args().shots
    names = ("chromium", "chromium-browser", "google-chrome")
    chromium = next((found for name in names if (found := shutil.which(name))), None)
    if chromium is None:
        print("!!! NO CHROMIUM: the width of the pages was NOT CHECKED !!!")
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        if shots:
            chosen = [BUILD / f"{name}.html" for name in shots[1:]] or pages()
            shoot(browser, chosen, Path(shots[0]))
            return
        wrong = look(browser, pages())
    if wrong:
        raise SystemExit("\n".join(wrong))


if __name__ == "__main__":
    main()
