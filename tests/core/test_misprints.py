"""Where the reports contradict themselves: the calculations that resources/docs/misprints.md names."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

DATA = Path(__file__).parent.parent / "data"


def rows(*place: str) -> list[dict[str, str]]:
    with DATA.joinpath(*place).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def worley() -> list[dict[str, str]]:
    return rows("worley1990_tables.csv")


def test_epsilon_is_a_norm(worley: list[dict[str, str]]) -> None:
    """One constant phase is weighted by 2 in the mixed model: its *squared* error (section 5.1)."""
    alone = {row["figure"]: float(row["epsilon"]) for row in worley if row["n"] == "1"}
    assert alone["18"] == pytest.approx(math.sqrt(2) * alone["6"], abs=0.1)


def test_counts_of_figure_6(worley: list[dict[str, str]]) -> None:
    """1208 pairs, and a step with a break inside enters twice."""
    for row in worley:
        if row["figure"] == "6":
            n, evaluations = int(row["n"]), int(row["evaluations"])
            assert evaluations * (1208 + n - 1) - int(row["updates"]) in (0, 1), f"n = {n}"


@pytest.mark.parametrize("k", [1, 2, 3])
def test_gauss_needs_one_point_more_than_the_degree(k: int) -> None:
    """For the square of a polynomial of degree k."""

    def integral(points: int) -> float:
        x, weight = np.polynomial.legendre.leggauss(points)
        return float(weight @ x ** (2 * k))

    exact = 2 / (2 * k + 1)
    assert integral(k + 1) == pytest.approx(exact)
    assert abs(integral(k) - exact) > 0.01


def test_5131_effects_are_doubled_halves() -> None:
    effects = [row for row in rows("spt", "nistir5131_table2_effects.csv") if row["contrast"] != "I"]
    assert len(effects) == 15
    for row in effects:
        printed = round(100 * float(row["effect_printed"]))
        assert printed % 2 == 0
        # The runs themselves are means that were rounded to 0.01.
        assert abs(printed / 2 - 100 * float(row["half_effect_recomputed"])) < 1


def test_5139_ranks() -> None:
    table = rows("spt", "nistir5139_tables4to10_image_benchmark.csv")

    def of(number: str) -> list[dict[str, str]]:
        return [row for row in table if row["table"] == number]

    nine, ten = ({row["factor"]: row["rank_printed"] for row in of(number)} for number in ("9", "10"))
    first = [row["factor"] for row in of("10")][:6]
    assert [ten[factor] for factor in first] == [nine[factor] for factor in first] == list("243179")
    effects = [float(row["main_effect_s"]) for row in of("10")]
    assert effects == sorted(effects, reverse=True), "so the ranks are 1 to 6"
    four = {row["rank"]: row for row in of("4")}
    assert four["21"]["main_effect_printed_if_different"] == "1.04"
    assert four["20"]["main_effect_s"] == four["22"]["main_effect_s"] == "0.04"
