"""The step that asks who is protected: nothing is chosen beforehand, and private inputs are seen nowhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from browser_helpers import (
    Watched,
    choose_roles,
    keep_plan,
    next_step,
    pay,
    upload,
    wait_for_noise,
)
from playwright.sync_api import Locator, Page, expect

ROWS = 60
AGES = [f"{age:.7f}" for age in np.random.default_rng(8).uniform(3.0, 71.0, ROWS)]
"""Inputs that nobody could come by: each with digits that are searched for later."""


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    """A table in which everybody has three rows."""
    visits = np.random.default_rng(9).uniform(100.0, 160.0, ROWS)
    lines = [f"{row // 3},{AGES[row]},{'fm'[row % 2]},{visits[row]:.7f}" for row in range(ROWS)]
    path = tmp_path / f"{tmp_path.name.replace('_', '-')}.csv"
    path.write_text("\n".join(["zper,age,sex,visits", *lines]) + "\n", encoding="utf-8")
    return path


def to_who(page: Page, path: Path, inputs: list[str]) -> None:
    upload(page, path)
    choose_roles(page, inputs, "visits")
    next_step(page, "Who is protected?")


def card(page: Page, title: str) -> Locator:
    return page.locator(".unit").filter(has_text=title)


def choose(page: Page, title: str) -> None:
    page.get_by_role("radio", name=title).check()


def bounds_and_points(page: Page) -> None:
    next_step(page, "Bounds of the outcome")
    page.get_by_label("Smallest possible visits").fill("50")
    page.get_by_label("Largest possible visits").fill("170")
    next_step(page, "Model and test points")
    page.get_by_text("Expert settings").click()
    page.locator("#per-axis").fill("12")


def fill_box(page: Page, low: str = "0", high: str = "80", cells: str = "20") -> None:
    box = page.get_by_role("group", name="age", exact=True)
    for label, text in (("From", low), ("To", high), ("Cells", cells)):
        box.get_by_label(label, exact=True).fill(text)


def test_nobody_is_protected_by_default_and_one_must_be_chosen(window: Watched, visits: Path) -> None:
    page = window.page
    to_who(page, visits, ["age"])
    for radio in page.locator(".unit").get_by_role("radio").all():
        expect(radio).not_to_be_checked()
    expect(page.locator(".note.warn")).to_contain_text("zper sounds like whose a row is")
    page.get_by_role("button", name="Next").click()
    expect(page.locator(".foot-error")).to_have_text("Say who is protected.")
    assert not any(path.endswith(("/inputs", "/people", "/preview")) for path in window.asked)
    window.check()


def test_a_person_is_protected_from_the_choice_to_the_report(window: Watched, visits: Path) -> None:
    page = window.page
    to_who(page, visits, ["age"])
    choose(page, "One person")
    expect(page.get_by_label("Column that tells whose a row is")).to_have_value("zper")
    page.get_by_text("20 people have 60 rows; nobody has more than 3").wait_for()
    expect(card(page, "One person").locator(".unit-cost")).to_contain_text("times that of one outcome")
    expect(card(page, "One outcome per row").locator(".unit-cost")).to_contain_text("of the bounds")
    bounds_and_points(page)
    wait_for_noise(page)
    keep_plan(page)
    expect(page.locator(".facts")).to_contain_text("one person, by zper")
    pay(page, "a clan")
    expect(page.locator(".badges").first).to_contain_text("protects one person")
    window.open("/budget")
    expect(page.locator(".card").filter(has_text="a clan").first).to_contain_text("protects one person")
    window.check()


def test_private_inputs_are_seen_nowhere(window: Watched, visits: Path) -> None:
    """Neither in what the server answers nor on a page, nor in what the browser keeps. Nobody asks."""
    page = window.page
    to_who(page, visits, ["age"])
    choose(page, "Whole rows, inputs included")
    page.get_by_role("button", name="Next").click()
    expect(page.locator(".foot-error")).to_contain_text("age: Type from where to where.")
    fill_box(page)
    expect(card(page, "Whole rows").locator(".unit-cost")).to_contain_text("of the bounds")
    expect(card(page, "One outcome per row").locator(".unit-cost")).to_be_empty()
    bounds_and_points(page)
    wait_for_noise(page)
    expect(page.locator(".key")).not_to_contain_text("inputs")
    keep_plan(page)
    expect(page.locator(".facts")).to_contain_text("one whole row: its inputs and its outcome")
    pay(page, "whole rows")
    page.get_by_role("heading", name="Where the rows are, about").wait_for()
    expect(page.locator(".plot .main-svg").first).to_be_visible()
    expect(page.locator(".key").first).not_to_contain_text("inputs")
    kept = page.evaluate("JSON.stringify(sessionStorage)")
    for age in AGES:
        for text in (" ".join(window.heard()), page.content(), kept):
            assert age[:7] not in text
    assert not any(path.endswith(("/inputs", "/people")) for path in window.asked)
    window.check()


@pytest.mark.slow  # a walk of its own; tests of the API and of plans ask the same
def test_who_changes_their_mind_leaves_nothing_of_the_inputs_behind(window: Watched, visits: Path) -> None:
    page = window.page
    to_who(page, visits, ["age"])
    choose(page, "One outcome per row")
    page.get_by_text("will be in the release file exactly as they are").wait_for()
    expect(card(page, "One outcome per row").locator(".unit-cost")).to_contain_text("of the bounds")
    assert AGES[0][:7] in page.evaluate("JSON.stringify(sessionStorage)")
    choose(page, "Whole rows, inputs included")
    expect(page.get_by_text("will be in the release file exactly as they are")).to_have_count(0)
    expect(card(page, "One outcome per row").locator(".unit-cost")).to_be_empty()
    kept = page.evaluate("JSON.stringify(sessionStorage)")
    for age in AGES:
        assert age[:7] not in kept
        assert age[:7] not in page.content()
    window.check()
