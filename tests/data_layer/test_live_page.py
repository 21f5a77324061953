"""The page in which n is chosen: opened and driven in a browser, it says what the program says."""

from __future__ import annotations

import base64
import json
import shutil
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from desktop import cli
from desktop.core.accounts import Account
from desktop.core.phases import fit
from desktop.data import live
from desktop.data.events import EventKind, Importer, Location, Region
from desktop.data.live import LARGEST, live_page
from desktop.data.material import Subject
from desktop.data.opening import open_trace
from desktop.data.report import today
from desktop.data.root_causes import explain
from desktop.data.statistics import Statistics
from desktop.data.store import Source, StoreWriter, open_store
from desktop.data.utilization import build, keep
from desktop.progress import Progress
from desktop.resources import samples
from desktop.ui.theme import DARK, LIGHT
from tests.digests import PROFILE

webdriver = pytest.importorskip("selenium.webdriver")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
in_browser = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs Debian's chromium-driver")
PALETTES = {look.name: asdict(look) for look in (LIGHT, DARK)}
#: What a stranger may call a region, a rank, a trace.
NASTY = "</script><img src=x onerror=\"document.title='broken'\"><script>document.title='broken'</script>"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a bundled trace, as the command makes it."""
    folder = tmp_path_factory.mktemp("live")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        assert cli.run(["report", str(samples()[0].path), "-o", str(folder / "run.html"), "--live"]) == 0
    return folder / "run.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    # Containers often have so little shared memory that a page dies of it.
    quiet = ("background-networking", "component-update", "sync", "gpu", "quic", "dev-shm-usage")
    for word in ("headless", "no-sandbox", "no-first-run", *(f"disable-{name}" for name in quiet)):
        options.add_argument(f"--{word}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_window_size(1366, 900)
    yield driver
    driver.quit()


@pytest.fixture
def opened(browser: Any) -> Callable[[Path], Any]:
    def show(path: Path) -> Any:
        from selenium.webdriver.support.wait import WebDriverWait

        browser.get(path.as_uri())
        ready = "return document.documentElement.dataset.ready"
        WebDriverWait(browser, 30).until(lambda b: b.execute_script(ready))
        assert browser.get_log("browser") == []
        return browser

    return show


def inside(content: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values and arrays of a page."""
    packed = content.decode().split('type="application/octet-stream">')[1].split("<")[0]
    data = zlib.decompress(base64.b64decode(packed))
    length = int.from_bytes(data[:4], "little")
    facts = json.loads(data[4 : 4 + length])
    arrays = {
        name: np.frombuffer(data, dtype, size, 4 + length + at)
        for name, (dtype, at, size) in facts["arrays"].items()
    }
    return facts, arrays


def words(browser: Any, name: str) -> str:
    return browser.find_element("id", name).text


@in_browser
def test_n_and_model_are_chosen_by_the_keyboard(page: Path, opened: Callable[[Path], Any]) -> None:
    from selenium.webdriver.common.keys import Keys

    browser = opened(page)
    facts, _ = inside(page.read_bytes())
    assert words(browser, "number") == str(facts["shown"]["n"])
    assert "Suggested" in words(browser, "fit")
    slider = browser.find_element("id", "n")
    slider.send_keys(Keys.HOME)
    assert words(browser, "number") == "1"
    with open_trace(samples()[0].path) as store:
        curve = build(store).curve()
    for n in range(2, 6):
        slider.send_keys(Keys.ARROW_RIGHT)
        assert slider.get_attribute("aria-valuetext") == f"{n} phases"
        rows = browser.find_elements("css selector", "#phases tr:not(.says)")
        assert len(rows) == n
        if n != facts["shown"]["n"]:
            expected = fit(curve, n, "mixed").epsilon
            assert float(words(browser, "fit").split("error ")[1].split()[0]) == pytest.approx(
                expected, rel=1e-3
            )
    browser.find_element("id", "model").send_keys("Cons")
    slider.send_keys(Keys.END)
    assert words(browser, "fit").startswith("Constant, 20 phases")
    browser.find_element("id", "shown").click()
    assert words(browser, "number") == str(facts["shown"]["n"])


@in_browser
def test_windows_of_usual_sizes_hold_every_column(
    page: Path, opened: Callable[[Path], Any], tmp_path: Path
) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    long = "W" * 150  # of a name without a space
    noisy(tmp_path / "long.h5", 400, 5, long)
    with open_store(tmp_path / "long.h5") as store:
        subject = Subject(store, long, n=3, phase_names=((8e-4, long),))
        content, _ = live_page(subject, PALETTES, "", today())
    (tmp_path / "long.html").write_bytes(content)
    for path, (wide, high) in product((page, tmp_path / "long.html"), [(1200, 800), (1366, 768)]):
        browser = opened(path)
        size = {"width": wide, "height": high, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        slider, numbers = browser.find_element("id", "n"), set()
        for by in (-150, -90, -30, 30, 90, 150):
            # In ms; otherwise each of the two ways of the hand takes 250.
            hand = ActionChains(browser, duration=20)
            hand.click_and_hold(slider).move_by_offset(by, 0).release().perform()
            numbers.add(words(browser, "number"))
            ends = browser.execute_script(
                "return [document.documentElement, document.querySelector('.wide')]"
                ".map((e) => [e.scrollWidth, e.clientWidth])"
            )
            assert all(content <= shown for content, shown in ends)
            told = browser.find_elements("css selector", "#phases tr.says")
            assert len(told) == int(words(browser, "number"))
        assert len(numbers) == 6  # n follows the hand
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@in_browser
def test_the_plots_move_by_keys_and_say_where_they_are(page: Path, opened: Callable[[Path], Any]) -> None:
    from selenium.webdriver.common.keys import Keys

    browser = opened(page)
    curve = browser.find_element("id", "curve")
    assert "between" not in curve.get_attribute("aria-label")

    def painted() -> str:
        script = "return new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(() =>"
        return browser.execute_script(f"{script} r(document.getElementById('curve').toDataURL()))))")

    before = painted()
    curve.send_keys("+++", Keys.ARROW_RIGHT)
    assert painted() != before
    assert "between" in curve.get_attribute("aria-label")
    curve.send_keys(Keys.HOME)
    assert painted() == before
    button = browser.find_element("css selector", "[aria-label='Show phase 2']")
    button.send_keys(Keys.ENTER)
    assert painted() != before
    # Each plot is drawn: its points have many colours.
    for name in ("curve", "timeline"):
        colours = browser.execute_script(
            "const c = document.getElementById(arguments[0]);"
            "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
            "const s = new Set();"
            "for (let i = 0; i < d.length; i += 4) s.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);"
            "return s.size",
            name,
        )
        assert colours > 4


def test_the_page_holds_what_the_program_says(page: Path) -> None:
    facts, arrays = inside(page.read_bytes())
    with open_trace(samples()[0].path) as store:
        use = build(store)
        curve = use.curve()
        model = next(m for m in facts["models"] if m["key"] == facts["shown"]["model"])
        shown = next(f for f in model["fits"] if f["n"] == facts["shown"]["n"])
        kept = Statistics(store)
        names = [phase["name"] for phase in shown["phases"]]
        told = explain(kept, use, shown["breaks"], names)
        assert [phase["says"] for phase in shown["phases"]] == [one.sentence for one in told.phases]
        assert told.causes[0].sentence.split(":")[0] in page.read_text(encoding="utf-8")
        for phase, (a, b) in zip(
            shown["phases"], zip(shown["breaks"], shown["breaks"][1:], strict=False), strict=True
        ):
            stats = kept.ranges([(a, b)], use, replay=True)[0]
            expected = {int(one): part for one, part in stats.account_parts(0.0005)}
            assert dict(phase["accounts"]) == pytest.approx(expected, abs=6e-5)
            assert phase["mean"] == pytest.approx(stats.computing, rel=1e-6)
        whole = kept.ranges([(curve.start, curve.start + curve.duration)], use)[0]
    assert [model["key"] for model in facts["models"]] == ["constant", "linear", "quadratic", "mixed"]
    assert all([f["n"] for f in model["fits"]] == list(range(1, 21)) for model in facts["models"])
    assert len(facts["accounts"]) == len(Account)
    np.testing.assert_array_equal(arrays["level"], curve.level)
    np.testing.assert_allclose(arrays["edges"], (curve.edges - curve.edges[0]) * curve.unit)
    # The timeline, added up: 255ths that are rounded down.
    shares = arrays["shares"].reshape(len(facts["classes"]), len(facts["rows"]), -1) / 255
    spent = (shares * np.diff(arrays["columns"])).sum(axis=(1, 2))
    computing = spent[facts["classes"].index("computing")] / curve.duration
    assert computing == pytest.approx(whole.computing, rel=0.01)


def noisy(path: Path, events: int, locations: int, region: str = "solve") -> None:
    """A trace of processors that are in one region throughout, and receive messages at random."""
    made = Importer("made", "Made for tests", "1", lambda p, h: True, lambda p, s, g: None, lambda p: [p])
    random = np.random.default_rng(7)
    with StoreWriter(path, Source("made", "made", 4711, "ab" * 32), made, PROFILE) as writer:
        writer.describe(ticks_per_second=1e9)
        number = writer.region(Region(region, "function"))
        receive = writer.region(Region("MPI_Recv", "mpi"))
        last = 4000 * events + 2
        for k in range(locations):
            writer.location(Location(k, f"{region} {k}", first=0, last=last))
        for k in range(locations):
            time = np.sort(random.integers(0, last - 2, events)) + 1
            kind = np.tile([EventKind.ENTER, EventKind.LEAVE], events // 2)
            numbers = np.full(events, receive)
            kind = np.concatenate([[EventKind.ENTER], kind, [EventKind.LEAVE]])
            numbers = np.concatenate([[number], numbers, [number]])
            time = np.concatenate([[0], time, [last]])
            writer.append("events", k, time=time, kind=kind, region=numbers)
        writer.complete()
        keep(writer, Progress())


def test_a_page_stays_small_whatever_the_trace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(live, "_EVENTS", 1000)  # as of a large trace, causes of one fit only
    noisy(tmp_path / "noisy.h5", 2_600, 64)
    with open_store(tmp_path / "noisy.h5") as store:
        content, material = live_page(Subject(store, "noisy"), PALETTES, "", today())
    assert material.curve.level.size > 100_000
    assert len(content) < LARGEST
    facts, arrays = inside(content)
    # Nothing is drawn lower or higher than the curve goes in a column.
    curve, many = material.curve, arrays["low"].size
    step = np.minimum((curve.edges[:-1] - curve.edges[0]) / np.ptp(curve.edges) * many, many - 1).astype(int)
    assert (arrays["low"][step] <= curve.level).all()
    assert (arrays["high"][step] >= curve.level).all()
    assert arrays["mean"].mean() == pytest.approx(
        np.average(curve.level, weights=np.diff(curve.edges)), rel=1e-4
    )
    assert len(facts["rows"]) == 64
    assert "is lost" in facts["models"][-1]["fits"][facts["shown"]["n"] - 1]["phases"][0]["says"]
    other = facts["models"][0]["fits"][1]["phases"]
    assert other[0]["says"] == "" and all(sum(part for _, part in one["accounts"]) > 0.99 for one in other)
    assert "causes are kept" in facts["note"] and "accounts" not in facts["note"]


@in_browser
def test_names_of_strangers_stay_text(tmp_path: Path, opened: Callable[[Path], Any]) -> None:
    noisy(tmp_path / "odd.h5", 40, 3, NASTY)
    with open_store(tmp_path / "odd.h5") as store:
        content, _ = live_page(
            Subject(store, NASTY, names={"MPI_Recv": NASTY}), PALETTES, f"report {NASTY}", today()
        )
    (tmp_path / "odd.html").write_bytes(content)
    browser = opened(tmp_path / "odd.html")
    assert browser.title.startswith("</script><img")
    assert NASTY[:20] in words(browser, "phases")
    assert browser.find_elements("css selector", "img") == []
    # Should something get in all the same, the policy stops it: scripts, pictures, connections.
    browser.execute_script(
        "const s = document.createElement('script'); s.textContent = \"document.title = 'broken'\";"
        "document.body.append(s); document.body.insertAdjacentHTML('beforeend', '<img src=x>');"
    )
    assert browser.title != "broken"
    refused = "return fetch('https://example.org').then(() => 'sent', () => 'refused')"
    assert browser.execute_script(refused) == "refused"
    assert sum("Content Security Policy" in line["message"] for line in browser.get_log("browser")) >= 2


@in_browser
def test_of_a_curve_alone_nothing_is_said_of_processors(
    opened: Callable[[Path], Any], tmp_path: Path
) -> None:
    (tmp_path / "c.csv").write_text("0 1\n1 3\n2 2\n3 0\n")
    page = tmp_path / "c.html"
    assert cli.run(["report", str(tmp_path / "c.csv"), "-o", str(page), "--live", "-n", "3"]) == 0
    browser = opened(page)
    # The reason of a suggestion is not one of a number that was asked for.
    assert "Mixed, 3 phases:" in words(browser, "fit") and "Suggested" not in words(browser, "fit")
    assert not browser.find_element("id", "timeline").is_displayed()
    assert words(browser, "heads").endswith("RMS residual")
    assert len(browser.find_elements("css selector", "#phases td")) == 3 * 7
    browser.find_element("id", "n").send_keys("\ue011")  # Home
    assert "Mixed, 1 phase:" in words(browser, "fit")


def test_what_a_live_page_cannot_be_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    trace = str(samples()[0].path)
    assert cli.run(["report", trace, "-o", str(tmp_path / "run.pdf"), "--live"]) == 1
    assert "--live makes one .html" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
