"""A command behind a slow line: ``python slow_line.py MS MBIT COMMAND...`` runs it, and what goes through its
standard input and output takes half of MS milliseconds each way, at MBIT megabits a second.

Stands in for ssh (``PHASEWRIGHT_SSH``) and in front of it. Knows nobody, so that it starts at once.
"""

import os
import subprocess
import sys
import threading
import time
from queue import SimpleQueue


def carry(source: int, sink: int, delay: float, rate: float) -> None:
    queue: SimpleQueue[tuple[float, bytes]] = SimpleQueue()

    def take() -> None:
        free = 0.0
        while data := os.read(source, 1 << 13):
            # A line holds what is on its way, and whoever sends waits for the rest, as with TCP.
            free = max(free, time.monotonic()) + len(data) / rate
            queue.put((free + delay, data))
            time.sleep(max(0.0, free - time.monotonic() - 0.02))
        queue.put((0.0, b""))

    threading.Thread(target=take, daemon=True).start()
    try:
        while data := (due := queue.get())[1]:
            time.sleep(max(0.0, due[0] - time.monotonic()))
            while data:
                data = data[os.write(sink, data) :]
    except OSError:
        pass
    os.close(sink)


def main() -> int:
    delay, rate = float(sys.argv[1]) / 2e3, float(sys.argv[2]) * 1e6 / 8
    child = subprocess.Popen(sys.argv[3:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None and child.stdout is not None
    to = os.dup(child.stdin.fileno())
    child.stdin.close()
    threading.Thread(target=carry, args=(0, to, delay, rate), daemon=True).start()
    carry(child.stdout.fileno(), 1, delay, rate)
    return child.wait()


if __name__ == "__main__":
    sys.exit(main())
