"""The pages in a real browser, on the real server: whole paths, roles, keyboard, phone, dark."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from browser_helpers import (
    DATASET,
    SECRETS,
    Site,
    Watched,
    create_dataset,
    focused,
    make_map,
    make_release,
    next_step,
    pay,
    spend,
    tab_to,
    to_model,
    to_release,
    wait_for_noise,
    write_table,
)
from playwright.sync_api import expect

import cloakgp

NOT_SIGNED_IN = "401"
Visit = Callable[..., Watched]


@pytest.fixture(scope="module")
def ready(site: Site) -> str:
    """The id of a release that is there from the start."""
    return make_release(site, site.token("a program", "custodian"))


def test_a_newcomer_gets_from_a_csv_file_to_a_report(window: Watched, tmp_path: Path) -> None:
    page = window.page
    page.get_by_role("heading", name="Data and roles").wait_for()
    to_model(page, write_table(tmp_path / "newcomer.csv"))

    expect(page.get_by_label("Learn it, privately (recommended)")).to_be_checked()
    for label in ("Lengthscale", "Scatter", "Design", "Inducing inputs"):
        expect(page.get_by_label(label, exact=True)).to_have_count(0)
    panel = wait_for_noise(page)
    expect(panel).to_contain_text("a forecast from the bounds")
    expect(panel).to_contain_text("costs nothing")
    expect(panel).to_contain_text("without a look at height")
    page.locator(".plot .main-svg").first.wait_for()

    next_step(page, "How private?")
    page.get_by_text("would be right in at most").wait_for()
    page.get_by_role("heading", name="Expected error against ε").wait_for()
    before = wait_for_noise(page).locator(".tiles").inner_text()
    page.get_by_label("Epsilon as a number").fill("2")  # the error follows
    expect(panel.locator(".tiles")).not_to_have_text(before)
    next_step(page, "The noise, beforehand")
    wait_for_noise(page)
    page.get_by_label("Name", exact=True).fill("newcomer's curve")
    page.get_by_role("button", name="Keep this plan").click()

    page.get_by_role("heading", name="Whose budget pays?").wait_for()
    create_dataset(page, "frugal", "0.3")
    expect(page.locator(".note.bad")).to_contain_text("does not fit")
    expect(page.get_by_role("button", name="Release now")).to_be_hidden()
    create_dataset(page, DATASET, "3")
    page.get_by_text("left after:").wait_for()
    asked = page.locator(".card").filter(has=page.get_by_role("heading", name="It fits into the budget"))
    for words in ("read privatelyheight", "read and publishedage", "protectsone row", "promiseε = 2"):
        expect(asked.locator(".facts")).to_contain_text(words)
    spend = page.get_by_role("button", name="Release now")
    confirm = page.get_by_label(f"Type {DATASET} to confirm")
    confirm.fill("village")
    expect(spend).to_be_disabled()
    confirm.fill(DATASET)
    spend.click()

    page.get_by_role("heading", name="Take it with you").wait_for()
    page.get_by_text("verified", exact=True).wait_for()
    page.locator(".plot .main-svg").first.wait_for()
    learned = page.get_by_role("group", name="What was learned")
    for words in ("size of the signal", "lengthscale", "in units of age", "noise", "in units of height"):
        expect(learned).to_contain_text(words)
    stages = page.get_by_role("group", name="Stages").locator("tbody tr")
    expect(stages.first).to_be_hidden()
    page.locator("summary", has_text=re.compile(r"In \d stages")).click()
    expect(stages.first).to_contain_text("120")
    got = {}
    for what in ("csv", "file", "report", "script"):
        with page.expect_download() as waiting:
            page.locator(f"[data-what={what}]").click()
        got[what] = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(got[what])
    report = got["report"].read_text(encoding="utf-8")
    assert "What is promised" in report
    assert "height" in report
    assert got["csv"].read_text().splitlines()[0] == "age,released,noise_std,denoised,denoised_std"
    assert len(got["csv"].read_text().splitlines()) == 26
    cloakgp.verify(got["file"])
    compile(got["script"].read_text(encoding="utf-8"), "script", "exec")
    assert not any(
        secret[:9] in path.read_bytes().decode("latin-1") for secret in SECRETS for path in got.values()
    )
    window.open("/budget")
    card = page.locator(".card").filter(has=page.get_by_role("heading", name="frugal"))
    expect(card).to_contain_text("in 0 steps")
    card.locator("summary", has_text="Add private columns").click()
    card.get_by_label("Private columns").fill("height, weight")
    card.get_by_role("button", name="Add").click()
    expect(card.locator(".facts")).to_contain_text("private columnsheight, weight")
    window.check()
    window.check_secrets()


def test_analysts_see_plans_and_releases_and_nothing_else(window: Watched, visit: Visit, ready: str) -> None:
    custodian = window
    custodian.open("/people")
    custodian.page.get_by_label("Name", exact=True).fill("Grace")
    custodian.page.get_by_role("button", name="Make a token").click()
    token = custodian.page.get_by_label("Token of Grace").input_value()

    analyst = visit()
    page = analyst.page
    analyst.sign_in(token)
    page.get_by_role("heading", name="Releases").wait_for()
    assert page.get_by_role("navigation", name="Pages").get_by_role("link").all_inner_texts() == [
        "Releases",
        "Plans",
    ]
    for path in ("/new/data", "/budget", "/people"):
        page.goto(f"{analyst.site.url}/#{path}")
        page.wait_for_url(re.compile("#/releases$"))
    page.get_by_role("link", name="Plans", exact=True).click()
    page.get_by_role("heading", name="Plans", level=1).wait_for()  # releases have the same names
    page.get_by_role("link", name="ready made").click()
    page.get_by_role("heading", name="Error to be expected").wait_for()

    analyst.open(f"/releases/{ready}", "textarea")
    page.locator("textarea").fill("12.5\n80")
    page.get_by_role("button", name="Ask", exact=True).click()
    answers = page.get_by_role("group", name="Answers").locator("tbody tr")
    expect(answers).to_have_count(2)
    expect(answers.first).to_contain_text("12.5")
    page.locator("textarea").fill("12.5, 3")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator(".field-error").first).to_have_text("Line 1 has 2 numbers; there must be 1.")

    row = custodian.page.locator("tr").filter(has_text="Grace")
    row.get_by_role("button", name="Revoke Grace").click()
    row.get_by_role("button", name="Really revoke Grace?").click()
    expect(row).to_contain_text("revoked")
    page.locator("textarea").fill("1")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_role("heading", name="Sign in").wait_for()
    analyst.check(NOT_SIGNED_IN)
    custodian.check()


def test_the_steps_work_with_the_keyboard_alone(visit: Visit, site: Site) -> None:
    window = visit()
    page = window.page
    keys = page.keyboard
    page.goto(site.url)
    page.wait_for_selector("h1")
    tab_to(page, "Your token")
    keys.type(site.token("keyboard", "custodian"))
    keys.press("Enter")
    page.get_by_role("button", name="Try it with generated heights").wait_for()
    tab_to(page, "Try it with generated heights")
    keys.press("Enter")
    page.get_by_role("group", name="Role of height").wait_for()
    tab_to(page, "not used", group="Role of age")
    keys.press("ArrowRight")  # round to the first
    expect(page.get_by_role("group", name="Role of age").get_by_label("input", exact=True)).to_be_checked()
    tab_to(page, "not used", group="Role of height")
    keys.press("ArrowLeft")
    page.get_by_text("is protected. It is read once").wait_for()

    tab_to(page, "Next: protection")
    keys.press("Space")
    page.get_by_role("heading", name="Who is protected?").wait_for()
    keys.press("Tab")
    tab_to(page, "One outcome per row")
    keys.press("Space")
    page.get_by_text("numbers, 0", exact=False).wait_for()  # the range: the inputs were read
    tab_to(page, "Next: bounds")
    keys.press("Space")
    page.get_by_role("heading", name="Bounds of the outcome").wait_for()
    tab_to(page, "Smallest possible height")
    keys.type("50")
    keys.press("Enter")  # not complete: the page says what is missing
    expect(page.locator(".foot-error")).to_have_text("Type both bounds, the lower one first.")
    tab_to(page, "Largest possible height")
    keys.type("170")
    keys.press("Enter")
    page.get_by_role("heading", name="Model and test points").wait_for()

    tab_to(page, "Learn it, privately")
    keys.press("ArrowRight")
    expect(page.get_by_label("I describe it")).to_be_checked()
    tab_to(page, "What is lengthscale?")
    keys.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("apart")
    keys.press("Escape")
    expect(dialog).to_be_hidden()
    assert "What is lengthscale?" in focused(page)["names"]
    tab_to(page, "Number of points")
    keys.press("Control+A")
    keys.type("20")
    keys.press("Enter")
    page.get_by_role("heading", name="How private?").wait_for()
    tab_to(page, "ε, epsilon")
    slider = page.get_by_label("ε, epsilon")
    was = slider.get_attribute("aria-valuetext")
    keys.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") != was
    tab_to(page, "Next: preview")
    keys.press("Enter")
    page.get_by_role("heading", name="The noise, beforehand").wait_for()
    wait_for_noise(page)
    tab_to(page, "Keep this plan")
    keys.press("Enter")
    page.get_by_role("heading", name="Whose budget pays?").wait_for()
    page.get_by_role("radio").last.wait_for()
    if not page.get_by_label("Name of the data set").is_visible():
        page.locator("h1").focus()
        tab_to(page, "", group="Data set in the ledger")
        keys.press("ArrowLeft")  # round to the last: a new one
    tab_to(page, "Name of the data set")
    keys.type("by keys")
    tab_to(page, "ε for ever")
    keys.type("3")
    keys.press("Enter")
    page.get_by_text("left after:").wait_for()
    tab_to(page, "Type by keys to confirm")
    keys.type("by keys")
    keys.press("Enter")
    page.get_by_role("heading", name="Take it with you").wait_for()
    window.check(NOT_SIGNED_IN)


@pytest.mark.usefixtures("few_models_here")
def test_no_page_is_wider_than_a_phone(visit: Visit, site: Site, ready: str, tmp_path: Path) -> None:
    window = visit(viewport={"width": 390, "height": 844}, color_scheme="dark")
    page = window.page
    window.open("/sign-in")
    assert window.scroll_width() <= 0
    window.sign_in()
    to_model(page, write_table(tmp_path / "phone.csv"))
    for following in ("How private?", "The noise, beforehand", None):
        wait_for_noise(page)
        page.locator(".plot .main-svg").first.wait_for()
        assert window.scroll_width() <= 0, f"before {following}"
        if following:
            next_step(page, following)
    for path in ("/releases", "/plans", f"/releases/{ready}", "/budget", "/people", "/words"):
        window.open(path)
        page.wait_for_timeout(150)
        assert window.scroll_width() <= 0, path
    window.open(f"/releases/{ready}")
    picture = page.locator(".plot .main-svg").first
    heights = []
    for width in (1280, 390, 1280):  # a chart keeps its height, and fits
        page.set_viewport_size({"width": width, "height": 844})
        room = page.locator(".plot").first.evaluate("(plot) => plot.clientWidth")
        expect(picture).to_have_attribute("width", str(room))
        heights.append(picture.evaluate("(drawn) => drawn.clientHeight"))
        assert window.scroll_width() <= 0, width
    assert heights == [420, 420, 420]
    curve = page.locator(".plot").first
    expect(curve).to_have_attribute("aria-label", re.compile("Predicted height by age"))
    page.get_by_label("what was released", exact=True).check()
    expect(curve).to_have_attribute("aria-label", re.compile("Released height by age"))

    page.set_viewport_size({"width": 390, "height": 844})
    window.open(f"/releases/{make_map(site, site.token('a program', 'custodian'))}", ".map .plot .main-svg")
    surface = page.locator(".map .plot")
    expect(surface).to_have_attribute(
        "aria-label", re.compile(r"Map of price by lon and lat, from .+ to .+ where something is known")
    )
    expect(page.locator(".map > .hint")).to_contain_text("Hatched: not known")
    page.get_by_text("Axes", exact=True).click()
    page.get_by_label("Across").select_option("lat")  # which swaps them
    expect(surface).to_have_attribute("aria-label", re.compile("Map of price by lat and lon"))
    expect(page.get_by_label("Up", exact=True)).to_have_value("lon")
    page.get_by_label("privacy's part", exact=True).check()
    expect(surface).to_have_attribute("aria-label", re.compile("Map of privacy's share of the variance"))
    picture = page.locator("[data-what='picture/svg']")
    expect(picture).to_have_attribute("href", re.compile(r"view=privacy&coordinates=lat&coordinates=lon$"))
    expect(surface.locator(".cbaxis text")).to_have_text(["0 %", "25 %", "50 %", "75 %", "100 %"])
    assert window.scroll_width() <= 0
    window.check(NOT_SIGNED_IN)


def test_dark_follows_the_system_and_the_button(visit: Visit, ready: str) -> None:
    window = visit(color_scheme="dark")
    page = window.page
    window.sign_in()
    assert page.locator("html").get_attribute("data-theme") == "dark"
    assert _contrast(window, "--ink", "--paper") > 12
    for theme in ("dark", "light"):
        for colour in ("--soft", "--public", "--private", "--free", "--warn", "--bad"):
            for ground in ("--card", "--paper"):
                assert _contrast(window, colour, ground) >= 4.5, (theme, colour, ground)
        for ground in ("--public", "--private"):
            assert _contrast(window, "--on-colour", ground) >= 4.5, (theme, ground)
        if theme == "dark":
            page.get_by_role("button", name="Light", exact=True).click()
    assert page.locator("html").get_attribute("data-theme") == "light"
    page.reload()
    page.wait_for_selector(".who-name")
    assert page.locator("html").get_attribute("data-theme") == "light"
    window.check()


def test_the_server_s_sentence_is_shown_when_something_is_wrong(window: Watched, tmp_path: Path) -> None:
    page = window.page
    path = write_table(tmp_path / "wrong.csv")
    to_model(page, path, "kernel")
    page.get_by_label("as text, for experts").check()
    page.get_by_label("Kernel", exact=True).fill("EQ(20) + Fog(3)")
    expect(page.locator(".panel .note.bad")).to_contain_text("EQ(20) + Fog(3)")
    window.open("/new/data")
    page.set_input_files("#upload", str(path))  # it is there already
    expect(page.locator(".note.bad").first).to_be_visible()
    window.check("422", "409")


def test_a_draft_survives_a_reload(window: Watched, tmp_path: Path) -> None:
    page = window.page
    to_model(page, write_table(tmp_path / "again.csv"))
    page.reload()
    page.get_by_role("heading", name="Model and test points").wait_for()
    expect(page.get_by_label("Learn it, privately")).to_be_checked()
    assert page.get_by_label("Number of points").input_value() == "25"
    window.open("/new/results")  # not reached yet: led back
    page.get_by_role("heading", name="The noise, beforehand").wait_for()
    window.check()


@pytest.mark.slow  # a walk of its own; tests of the API and of plans ask the same
def test_a_kept_plan_can_be_taken_up_and_pays_again_only_if_asked_to(window: Watched, ready: str) -> None:
    page = window.page
    window.open("/plans")
    page.get_by_role("link", name="ready made").click()
    page.get_by_role("button", name="Take up this plan").click()
    page.get_by_role("heading", name="The noise, beforehand").wait_for()
    panel = wait_for_noise(page)
    expect(page.get_by_label("Name", exact=True)).to_have_value("ready made")

    page.get_by_label("Epsilon as a number").fill("0.01")  # large noise is faded
    expect(panel).to_contain_text("25 faded")
    page.get_by_text("Hardly more would be known than before, at any point").wait_for()
    page.locator(".panel .plot .main-svg").first.wait_for()  # which is drawn later than it is said
    expect(panel.locator(".plot")).to_have_attribute("aria-label", re.compile("at 25 of 25 points hardly"))
    page.get_by_label("Epsilon as a number").fill("1")
    expect(panel).not_to_contain_text("25 faded")

    page.get_by_role("button", name="Keep this plan").click()
    page.get_by_role("radio", name="ready").check()
    page.get_by_text("was released for these people before").wait_for()  # the very same plan
    expect(page.get_by_role("button", name="Release now")).to_be_hidden()
    page.get_by_label("Release it once more").check()
    expect(page.get_by_label("Type ready to confirm")).to_be_visible()
    window.check()


def _contrast(window: Watched, colour: str, ground: str) -> float:
    """Of two colours of the theme, as the Web's guidelines count it."""
    script = "(name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()"

    def light(name: str) -> float:
        value = window.page.evaluate(script, name).lstrip("#")
        parts = [int(value[place : place + 2], 16) / 255 for place in (0, 2, 4)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    one, other = sorted((light(colour), light(ground)), reverse=True)
    return (one + 0.05) / (other + 0.05)


def test_experts_describe_the_model_and_change_their_mind(window: Watched, tmp_path: Path) -> None:
    page = window.page
    to_model(page, write_table(tmp_path / "expert.csv"), "kernel")
    panel = wait_for_noise(page)
    expect(panel).to_contain_text("exact, worked out")
    expect(page.get_by_label("Inducing inputs", exact=True)).to_have_value("")
    before = panel.locator(".tiles").inner_text()
    page.get_by_label("Lengthscale", exact=True).fill("40")  # the noise follows
    expect(panel.locator(".tiles")).not_to_have_text(before)
    page.get_by_text("How the noise is shaped").click()
    page.get_by_label("the whole function").check()
    expect(page.get_by_label("Design", exact=True)).to_be_disabled()
    wait_for_noise(page)
    page.get_by_label("Learn it, privately").check()
    expect(panel).to_contain_text("a forecast from the bounds")
    expect(page.get_by_label("Lengthscale", exact=True)).to_have_count(0)
    page.get_by_label("I describe it").check()
    expect(page.get_by_label("Lengthscale", exact=True)).to_have_value("40")
    expect(panel).to_contain_text("exact, worked out")
    window.check()


@pytest.mark.slow  # a walk of its own; tests of the API and of plans ask the same
def test_more_can_be_asked_of_a_learned_release(window: Watched, site: Site, tmp_path: Path) -> None:
    page = window.page
    to_release(page, write_table(tmp_path / "more.csv"))
    pay(page, "more")
    page.get_by_role("button", name="Ask for more").click()
    page.get_by_role("heading", name="How private?").wait_for()
    expect(page.locator(".note.public")).to_contain_text("starts from an earlier release")
    wait_for_noise(page)
    next_step(page, "The noise, beforehand")
    wait_for_noise(page)
    page.get_by_role("button", name="Keep this plan").click()
    page.get_by_role("heading", name="Whose budget pays?").wait_for()
    page.get_by_role("radio", name="more").check()
    spend(page, "more")
    newest, first = site.state.releases.everything()[:2]
    assert newest["settings"]["given"] == [first["id"]]
    window.check()
    window.check_secrets()
