"""A rod that is heated at its ends: a small program to try an experiment with."""

import sys

CELLS = 60


def smooth(cells):
    """Called once a sweep, and does most of the work."""
    inner = [b + 0.25 * (a - 2 * b + c) for a, b, c in zip(cells, cells[1:], cells[2:])]
    return [cells[0], *inner, cells[-1]]


def heat_end(cells, at, degrees):
    """Called twice a sweep, and does next to nothing itself."""
    cells[at] = 0.5 * (cells[at] + degrees)


def main():
    cells = [0.0] * CELLS
    for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 1000):
        heat_end(cells, 0, 100)
        heat_end(cells, -1, 50)
        cells = smooth(cells)
    print(f"total {sum(cells):.6e}")


if __name__ == "__main__":
    main()
