"""Routines and loops in sources of C, C++, Fortran and Python, and delays written into a copy of them."""

from __future__ import annotations

import ast
import shutil
import subprocess
from pathlib import Path

import pytest

from desktop.data.places import chosen, find_places, first_choice, hottest, offered, prepare
from desktop.data.syntax import parts_of

CPP = """\
#include <vector>
namespace outer { namespace {
template <class T> struct Grid {
  Grid(int n) : cells(n), size{n} { clear(); }
  ~Grid() { size = 0; }
  auto at(int i) const -> const T& { return cells[i]; }
  void clear();
  T &operator[](int i) { return cells[i]; }
  static constexpr int twice(int i) { return 2 * i; }
  std::vector<T> cells; int size;
};
template <class T>
void Grid<T>::clear()
{
  for (auto &cell : cells) { cell = T(); }
}
} }
extern "C" int sum(const int *from,
                   int count)
{
  auto add = [&](int i) { int s = 0; while (i > 0) { s += from[--i]; } return s; };
  if (count < 0)
    return 0;
  do { count += 0; } while (0);
  return add(count);
}
int main() { outer::Grid<int> g(3); int a[] = {1, 2}; return g.at(0) + g[1] + sum(a, 2) + g.twice(0) - 3; }
"""

FORTRAN = """\
module shapes
  implicit none
  type :: circle
    real :: r
  end type
contains
  real(kind=8) function area(c) result(a)
    type(circle), intent(in) :: c
    integer :: i
    a = 0
    outer: do i = 1, 4
      a = a + c%r
    end do outer
  end function area
  pure integer function one()
    one = 1
  end function
  subroutine empty()
  end subroutine
  recursive subroutine down(n)
    integer, intent(in) :: n
    if (n > 0) then
      call down(n - 1)
    end if
  end subroutine down
end module shapes
program main
  use shapes
  implicit none
  type(circle) :: c = circle(1.0)
  call down(3)
  print *, area(c) + one()
end program main
"""

PYTHON = '''\
#!/usr/bin/env python3
"""Text."""
from __future__ import annotations
import asyncio
class Grid:
    size = 3
    def clear(self, cells: list[int] = [1,
                                        2]) -> None:
        """Text."""
        for k in range(len(cells)):
            cells[k] = 0
    @staticmethod
    def one(): return 1
async def slow():
    def inner():
        return [k for k in range(3)]
    while True:
        return inner()
print(Grid.one(), asyncio.run(slow()))
'''


def of(tmp_path: Path, name: str, text: str) -> list[tuple[str, int, str]]:
    (tmp_path / name).write_text(text)
    return [(s.place.routine, s.place.line, s.place.construct) for s in offered(tmp_path, [name])]


def test_places_of_cplusplus(tmp_path):
    """Namespaces, classes, templates, initialisers, trailing return types, lambdas, operators."""
    assert of(tmp_path, "grid.cpp", CPP) == [
        ("outer::Grid::Grid", 4, "function"),
        ("outer::Grid::~Grid", 5, "function"),
        ("outer::Grid::at", 6, "function"),
        ("outer::Grid::operator[]", 8, "function"),
        ("outer::Grid::clear", 13, "function"),
        ("outer::Grid::clear", 15, "for loop"),
        ("sum", 18, "function"),
        ("lambda in sum", 21, "function"),
        ("lambda in sum", 21, "while loop"),
        ("sum", 24, "do loop"),
        ("main", 27, "function"),
    ]


def test_places_of_fortran(tmp_path):
    """Typed functions, modules, labels; what has to be pure, and what does nothing, is none."""
    assert of(tmp_path, "shapes.f90", FORTRAN) == [
        ("area", 7, "function"), ("area", 11, "do loop"), ("down", 20, "routine"), ("main", 27, "program"),
    ]  # fmt: skip


def test_places_of_python(tmp_path):
    assert of(tmp_path, "grid.py", PYTHON) == [
        ("Grid.clear", 7, "function"), ("Grid.clear", 10, "for loop"), ("Grid.one", 13, "function"),
        ("slow", 14, "function"), ("slow.inner", 15, "function"), ("slow", 17, "while loop"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "build"),
    [
        ("grid.cpp", CPP, ["c++", "-std=c++17", "-Wall", "-Werror"]),
        ("shapes.f90", FORTRAN, ["gfortran", "-cpp", "-Wall", "spt_delay_c.c", "spt_delay.f90"]),
    ],
)
def test_all_places_at_once_compile_and_change_no_result(tmp_path, name, text, build):
    """With every delay, and with none; lines stay those of the user's file, and are found again."""
    from desktop import resources

    for tool in {build[0], "cc"}:
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed on this machine")
    for helper in (resources.folder() / "spt").iterdir():
        if helper.is_file():
            shutil.copy(helper, tmp_path)
    (tmp_path / name).write_text(text)
    spots = offered(tmp_path, [name])
    outputs = {}

    def run(flags: list[str]) -> tuple[int, str]:
        words = [*build, *flags, name, "-o", "program"]
        subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
        done = subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    outputs["before"] = run([])
    places = prepare(tmp_path, spots)
    outputs["off"] = run(["-DSPT_DELAY=1"])
    outputs["on"] = run(["-DSPT_DELAY=1", *(f"-D{place.macro}" for place in places)])
    assert outputs["before"] == outputs["off"] == outputs["on"]
    again = {place.macro: place for place in find_places(tmp_path, [name])}
    assert len(again) == len(places) == len(spots)
    assert [again[p.macro].routine for p in places] == [p.routine for p in places]
    # The line of a routine's first statement or brace, in the file as the user has it.
    assert all(0 <= again[p.macro].line - p.line <= 4 for p in places)


def test_delays_in_python_change_no_result(tmp_path):
    of(tmp_path, "grid.py", PYTHON)
    places = prepare(tmp_path, offered(tmp_path, ["grid.py"]))
    text = (tmp_path / "grid.py").read_text()
    calls = [
        n
        for n in ast.walk(ast.parse(text))
        if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "spt_delay"
    ]
    assert len(calls) == len(places) == 6
    assert text.startswith(
        '#!/usr/bin/env python3\n"""Text."""\nfrom __future__ import annotations\nfrom spt_delay'
    )
    found = {p.macro: p for p in find_places(tmp_path, ["grid.py"])}
    assert {m: p.routine for m, p in found.items()} == {p.macro: p.routine for p in places}
    assert found["F5"].line == 16  # of its first statement, in the file as it was
    assert found["F1"].factor(50).high.environment == (("SPT_FACTORS", "F1:{delay}"),)


def test_the_hottest_come_first(tmp_path):
    of(tmp_path, "grid.cpp", CPP)
    spots = offered(tmp_path, ["grid.cpp"])
    seconds = {
        "int sum(const int*, int)": 6.0,
        "void outer::Grid<T>::clear() [with T = int]": 3.0,
        "MPI_Send": 1.0,
    }
    by_heat = hottest(spots, seconds)
    assert [(s.place.routine, s.share) for s in by_heat[:3]] == [
        ("sum", 0.6),
        ("sum", 0.6),
        ("outer::Grid::clear", 0.3),
    ]
    assert [s.place.routine for s in first_choice(by_heat, 2)] == ["sum", "outer::Grid::clear"]
    assert [s.place.line for s in chosen(spots, ["clear", "Grid::at", "grid.cpp:24"])] == [13, 6, 24]
    with pytest.raises(ValueError, match="no routine or loop 'nothing'"):
        chosen(spots, ["nothing"])


@pytest.mark.parametrize("language", ["c", "cpp", "fortran", "python"])
def test_anything_can_be_read(language):
    """Sources that are none, and broken ones, end in what could be read of them."""
    for text in (b"", b"\0\xff", b"int f( {{{ #ifdef", b"subroutine", b"def f(:\n  x", CPP.encode()[:300]):
        for piece in parts_of(text, language):
            assert piece.line >= 1
