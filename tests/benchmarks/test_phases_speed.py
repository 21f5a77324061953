"""Speed of phase fits: ``pytest tests/benchmarks/test_phases_speed.py --benchmark-enable``.

What is compared with whom is printed by ``python -m tests.benchmarks.phases``; here the same work is kept
under watch from one version to the next (``--benchmark-compare``).
"""

from __future__ import annotations

import pytest

from desktop.core.curve import StepCurve
from desktop.core.phases import fit, sweep
from desktop.core.tree import moment_tree
from tests.benchmarks import paper
from tests.curves import phased

STEPS = 100_000
MODELS = ("constant", "linear", "quadratic", "mixed", "budget", "periodic", "saturation")


@pytest.fixture(scope="module")
def curve() -> StepCurve:
    made = StepCurve(*phased(STEPS))
    moment_tree(made)
    return made


def test_build(benchmark, curve: StepCurve) -> None:
    def build():
        return moment_tree(StepCurve(curve.edges, curve.level))

    assert benchmark(build).runs > 1


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("n", [20, 200])
def test_one_fit(benchmark, curve: StepCurve, model: str, n: int) -> None:
    assert 0 < benchmark(fit, curve, n, model).n <= n


@pytest.mark.parametrize("also", ["periodic", "saturation"])
@pytest.mark.parametrize(("model", "n"), [("mixed", 20), ("budget", 60)])
def test_one_fit_among_polynomials_and_others(
    benchmark, curve: StepCurve, model: str, n: int, also: str
) -> None:
    assert benchmark(fit, curve, n, model, basis=also).n > 1


@pytest.mark.parametrize("model", MODELS)
def test_all_n_to_20(benchmark, curve: StepCurve, model: str) -> None:
    assert benchmark(sweep, curve, model, 20).fits[-1].epsilon > 0


@pytest.mark.parametrize("way", [paper.GIVENS, paper.MOMENTS], ids=["givens", "moments"])
@pytest.mark.parametrize("degree", [0, 1, 2])
def test_the_papers_method(benchmark, degree: int, way: int) -> None:
    """n = 20 directly, to be set against `test_one_fit`, which finds the same epsilon."""
    steps = phased(STEPS)
    found = benchmark.pedantic(paper.fit, (*steps, degree, 20), {"way": way}, rounds=2, warmup_rounds=1)
    assert found.epsilon == pytest.approx(fit(StepCurve(*steps), 20, MODELS[degree]).epsilon, rel=1e-6)
