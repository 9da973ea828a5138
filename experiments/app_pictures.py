"""Screenshots of the app for the tutorial: a newcomer's way from a table to a release, on generated heights.

    python experiments/app_pictures.py [--output docs/pictures]

Drives the real app in a browser with what the tests drive it with, so it goes the way that a person goes and
fails where the pages have changed. Needs the extras ``app`` and ``dev``, and Chromium. Noise is drawn anew
each time: the curve on the pictures differs from run to run.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "app"))

import browser_helpers as person  # noqa: E402

from cloakgp.datasets import make_kung_like  # noqa: E402

SIZE = {"width": 1080, "height": 760}


def write_table(path: Path) -> Path:
    """The table of the tutorial."""
    X, y = make_kung_like()
    rows = [
        f"{1 + row % 4},{age},{height:.1f}" for row, (age, height) in enumerate(zip(X[:, 0], y, strict=True))
    ]
    path.write_text("\n".join(["village,age,height", *rows]) + "\n", encoding="utf-8")
    return path


class Camera:
    """Pictures of one page, without its foot, in few colours."""

    def __init__(self, page: Page, folder: Path) -> None:
        self.page, self.folder = page, folder

    def take(self, name: str, start: str | None = None, end: str | None = None) -> None:
        """The page, from the part with one heading to before the part with another."""
        self.page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
        self.page.add_style_tag(content="footer { display: none !important }")
        self.page.wait_for_timeout(1500)  # charts are drawn, nothing moves any more
        shot = Image.open(io.BytesIO(self.page.screenshot(full_page=True, scale="css"))).convert("RGB")
        top = self._above(start) if start else 0
        picture = shot.crop((0, top, shot.width, self._above(end) if end else shot.height))
        path = self.folder / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        picture.quantize(96).save(path, optimize=True)
        print(path.relative_to(self.folder))

    def _above(self, heading: str) -> int:
        box = self.page.get_by_role("heading", name=heading).bounding_box()
        assert box is not None
        return int(box["y"]) - 28


def walk(page: Page, camera: Camera, table: Path) -> None:
    """From the first page to what is taken home; a picture of each step."""
    person.upload(page, table)
    person.choose_roles(page, ["age"], "height")
    page.get_by_text("is protected. It is read once").wait_for()
    camera.take("tutorial/roles")
    person.next_step(page, "Who is protected?")
    page.get_by_label("One outcome per row").check()
    camera.take("tutorial/protection")
    person.next_step(page, "Bounds of the outcome")
    page.get_by_label("Smallest possible height").fill("0")
    page.get_by_label("Largest possible height").fill("250")
    camera.take("tutorial/bounds")
    person.next_step(page, "Model and test points")
    person.next_step(page, "How private?")
    person.wait_for_noise(page)
    camera.take("tutorial/promise")
    person.next_step(page, "The noise, beforehand")
    person.wait_for_noise(page)
    camera.take("tutorial/forecast")
    camera.take("app")
    page.get_by_role("button", name="Keep this plan").click()
    page.get_by_role("heading", name="Whose budget pays?").wait_for()
    person.create_dataset(page, "village 1969", "3", "0.0001")
    page.get_by_label("Type village 1969 to confirm").fill("village 1969")
    camera.take("tutorial/budget")
    page.get_by_role("button", name="Release now").click()
    page.get_by_role("heading", name="Take it with you").wait_for()
    camera.take("tutorial/results", end="What was learned")
    page.get_by_label("age on each line").fill("12.5\n80")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_role("cell", name="12.5").first.wait_for()
    camera.take("tutorial/asking", start="Ask anywhere", end="Not exact enough")


def main(output: Path) -> None:
    found = person.find_browser()
    if found is None:
        raise SystemExit("no Chromium: install one, for example chromium from your distribution")
    os.environ["LOGNAME"] = "ada"  # who starts the server, as the pages show it
    with (
        tempfile.TemporaryDirectory() as folder,
        person.serving(Path(folder) / "data") as site,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        window = person.Watched(browser, site, viewport=SIZE)
        window.page.set_default_timeout(120_000)
        window.sign_in()
        walk(window.page, Camera(window.page, output), write_table(Path(folder) / "heights.csv"))
        browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "pictures")
    main(parser.parse_args().output)
