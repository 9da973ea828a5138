"""The pages in a real browser: other ways in for data, odd names, functions, and what goes wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from browser_helpers import (
    AGES,
    SECRETS,
    Site,
    Watched,
    choose_roles,
    describe,
    drop,
    keep_plan,
    next_step,
    pay,
    to_model,
    upload,
    wait_for_noise,
    write_table,
)
from playwright.sync_api import Page, expect

from cloakgp.app import Limits
from cloakgp.app.accounts import utc_now

LIMITS = Limits(upload_bytes=50_000)
NAME = "a<b>&%{x}"
"""A column whose name plotly would take for bold letters, an entity and a number of the point."""


HEIGHTS = [float(secret) for secret in SECRETS]


def write_parquet(path: Path, columns: dict[str, Any]) -> Path:
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(columns), path)
    return path


def test_a_table_as_it_is_gives_answers_by_name(window: Watched, tmp_path: Path) -> None:
    """Semicolons, decimal commas, levels, dates, an empty cell, words for yes and no, and an odd name."""
    page = window.page
    rows = [
        f"{age};{('Süd', 'West')[row % 2]};2024-0{1 + row % 9}-01;{('nein', 'ja')[row % 3 == 0]}".replace(
            ".", ","
        )
        for row, age in enumerate(AGES)
    ]
    rows[6] = f";{rows[6].split(';', 1)[1]}"
    path = tmp_path / "<b>Besuche</b>.csv".replace("/", "∕")
    path.write_bytes("\r\n".join(["alter;klinik;tag;krank", *rows]).encode("utf-16"))
    upload(page, path)
    choose_roles(page, ["alter", "klinik"], "krank")
    page.get_by_label("yes or no", exact=True).check()
    page.get_by_label("No is written as").fill("nein")
    page.get_by_role("button", name="Next").click()
    expect(page.locator(".foot-error")).to_contain_text("how both no and yes are written")
    page.get_by_label("Yes is written as").fill("ja")
    next_step(page, "Who is protected?")
    page.get_by_label("One outcome per row").check()
    expect(page.locator(".note.bad")).to_contain_text(f"{path.name}: column 'alter'")
    page.get_by_role("button", name="Leave these rows out").click()
    facts = page.locator(".facts").first
    expect(facts).to_contain_text("2 levels: Süd, West")
    expect(page.locator("summary", has_text="decimal comma")).to_contain_text("semicolons, UTF-16-LE")
    next_step(page, "Bounds of the outcome")
    page.get_by_text("There is nothing to type here").wait_for()
    next_step(page, "Model and test points")
    page.get_by_label("I describe it").check()
    page.get_by_text("a curve behind the probability of yes").wait_for()
    expect(page.locator(".written")).to_contain_text(re.compile(r"Category\(.+ \+ Constant\(2\)"))
    page.get_by_label("Prior mean of f").fill("-0,5")
    page.get_by_label("Points along each input").fill("6")
    expect(page.get_by_text("12 points in all")).to_be_visible()
    keep_plan(page)
    pay(page, "clinics")
    page.get_by_role("heading", name="probability of krank: ja by alter and klinik").wait_for()
    expect(page.locator(".facts").last).to_contain_text("Constant(2)")
    page.locator(".plot .main-svg").first.wait_for()
    expect(page.locator(".key").first).to_have_text("SüdWest")
    page.get_by_label("alter, klinik on each line").fill("30,5; West\n30; Nord")
    page.get_by_label("Probability of the interval").fill("0,9")
    page.get_by_role("button", name="Ask", exact=True).click()
    answers = page.get_by_role("group", name="Answers")
    expect(answers).to_contain_text("90 % interval")
    expect(answers.locator("tbody tr").first).to_contain_text("30.5West0.")
    expect(page.get_by_text("predicted from the others: klinik Nord")).to_be_visible()
    window.check("422")  # the empty cell


def test_classes_by_private_dates_have_a_curve_each(window: Watched, tmp_path: Path) -> None:
    """Classes are typed, and so is the box of dates; what is asked of one class is drawn with it."""
    page, path = window.page, tmp_path / "trips.csv"
    rows = [f"2024-0{1 + row % 9}-15,{('car', 'bus', 'train')[row % 3]}" for row in range(40)]
    path.write_text("\n".join(["day,by", *rows]), encoding="utf-8")
    upload(page, path)
    choose_roles(page, ["day"], "by")
    page.get_by_label("one of several classes").check()
    page.get_by_label("The classes, as the table writes them").fill("car, bus")
    page.get_by_role("button", name="Next").click()
    expect(page.locator(".foot-error")).to_contain_text("Name three classes or more")
    page.get_by_label("The classes, as the table writes them").fill("car\nbus\ntrain")
    next_step(page, "Who is protected?")
    page.get_by_label("Whole rows, inputs included").check()
    box = page.get_by_role("group", name="day", exact=True)
    box.get_by_label("a date").check()
    box.get_by_label("From").fill("2024-12-31")
    box.get_by_label("To").fill("2024-01-01")
    box.get_by_role("textbox", name="Cells").fill("6")
    page.get_by_role("button", name="Next").click()
    expect(page.locator(".foot-error")).to_contain_text("The second date must be after the first")
    box.get_by_label("From").fill("2023-12-31")
    next_step(page, "Bounds of the outcome")
    page.get_by_text("by is one of car, bus, train in every row").wait_for()
    next_step(page, "Model and test points")
    page.get_by_text("Expert settings").click()
    page.get_by_label("Number of points").fill("5")
    keep_plan(page)
    pay(page, "trips")
    page.locator(".plot .main-svg").first.wait_for()
    expect(page.locator(".key").first).to_have_text("carbustrain")
    page.get_by_label("day on each line").fill("2024-05-31")
    page.get_by_role("button", name="Ask", exact=True).click()
    answers = page.get_by_role("group", name="Probabilities")
    expect(answers.locator("thead")).to_have_text("daycarbustrain")
    expect(answers.locator("tbody tr")).to_contain_text("2024-05-310.")
    page.get_by_label("bus", exact=True).check()
    expect(page.locator(".key").first).to_contain_text("your questions")
    window.check()


def test_what_is_too_large_or_unreadable_is_said_in_words(window: Watched, tmp_path: Path) -> None:
    page = window.page
    large = tmp_path / "large.csv"
    large.write_bytes(b"age,height\n" + b"1,2\n" * 20_000)
    page.set_input_files("#upload", str(large))
    expect(page.locator(".note.bad")).to_have_text("large.csv has 80 kB; this server takes at most 50 kB.")
    nothing = tmp_path / "nothing.csv"
    nothing.write_bytes(b"1.5,140.1\n2.5,141.1\n")
    page.set_input_files("#upload", str(nothing))
    expect(page.locator(".note.bad")).to_contain_text("first line must name the columns")
    expect(page.locator(".note.bad")).not_to_contain_text("140")
    page.locator(".drop").evaluate(
        """(box) => {
          const file = {name: "folder", size: 0, arrayBuffer: () => Promise.reject(new Error("a folder"))};
          const event = new Event("drop");
          event.dataTransfer = {files: [file]};
          box.dispatchEvent(event);
        }"""
    )
    expect(page.locator(".note.bad")).to_contain_text("folder cannot be read")
    assert not any("large.csv" in path for path in window.asked)
    window.check("422")


def texts(page: Page) -> list[str]:
    """All words in the picture, as they are seen."""
    page.locator(".plot .main-svg").first.wait_for()
    return [text.replace("\xa0", " ") for text in page.locator(".plot text").all_text_contents()]


def hovered(page: Page) -> str:
    """What the picture says of a point in the middle of a map."""
    page.locator(".plot .nsewdrag").first.hover()
    page.locator(".hoverlayer text").first.wait_for()
    return " ".join(page.locator(".hoverlayer text").all_text_contents())


def test_a_name_is_no_markup_in_pictures(window: Watched, tmp_path: Path) -> None:
    """Neither on axes nor in the words at a point, for one input and for two."""
    page = window.page
    columns = {NAME: AGES, "second&lt;": [row % 7 for row in range(60)], "y<i>&amp;": HEIGHTS}
    path = write_parquet(tmp_path / "names.parquet", columns)
    page.get_by_role("button", name="Try it with generated heights").wait_for()
    assert drop(page, path, "h1"), "beside the box: the browser would have opened the file"
    assert drop(page, path)
    page.get_by_role("heading", name="What is what in names.parquet?").wait_for()
    describe(page, [NAME], "y<i>&amp;")
    wait_for_noise(page)
    assert {NAME, "std, in units of y<i>&amp;"} <= set(texts(page))

    window.open("/new/data")
    describe(page, [NAME, "second&lt;"], "y<i>&amp;")
    page.get_by_text("Expert settings").click()
    page.get_by_label("Points along each input").fill("4")
    wait_for_noise(page)
    assert {NAME, "second&lt;"} <= set(texts(page))
    said = hovered(page)
    assert NAME in said
    assert "second&lt;" in said
    next_step(page, "How private?")
    page.get_by_role("heading", name="Expected error against ε").wait_for()
    expect(page.locator(".plot").first).to_be_visible()
    window.open("/new/model")
    keep_plan(page)
    pay(page, "names")
    assert {NAME, "second&lt;", "y<i>&amp;"} <= set(texts(page))  # axes, and the bar of colours
    assert NAME in hovered(page)
    assert page.locator(".plot b, .plot i, .plot a").count() == 0
    window.check()


@pytest.mark.slow  # a walk of its own; tests of the API and of plans ask the same
def test_a_draft_is_not_left_to_an_analyst(
    visit: Callable[..., Watched], site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who signs in where a custodian's session has ended: inputs are nobody's until they are released."""
    window = visit()
    window.sign_in()
    page = window.page
    to_model(page, write_table(tmp_path / "left.csv"))
    assert "left.csv" in page.evaluate("JSON.stringify(sessionStorage)")
    late = utc_now() + timedelta(hours=13)
    monkeypatch.setattr("cloakgp.app.accounts.utc_now", lambda: late)
    page.get_by_label("Number of points").fill("30")
    page.get_by_role("heading", name="Sign in").wait_for()
    page.get_by_label("Your token").fill(site.token("Grace", "analyst"))
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Releases").wait_for()
    assert "left.csv" not in page.evaluate("JSON.stringify(sessionStorage)")
    window.check("401")
