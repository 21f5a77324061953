"""Trials of an experiment on a batch system: a job array that runs one trial each, and its collection.

Every job writes a result of its own below ``results/``; nothing is shared between them but the description
and the builds, so they may run on any nodes that see the folder.
"""

from __future__ import annotations

import json
import math
import shlex
from pathlib import Path

from desktop.data.atomic import write_text
from desktop.data.experiment import Experiment, Journal, Trial, state_of
from desktop.data.runner import Runner
from desktop.errors import ExperimentError

RESULTS = "results"
_LARGEST = 1 << 20


def planned(experiment: Experiment) -> dict[int, tuple[int, int]]:
    """Order (from 1) -> replicate, treatment."""
    sheet = experiment.sheet()
    return {
        k + 1: (int(r), int(t)) for k, (r, t) in enumerate(zip(sheet.replicate, sheet.treatment, strict=True))
    }


def write_script(experiment: Experiment, path: Path) -> None:
    """A job array (Slurm's words, of which other systems have their own) that runs one trial at a time.

    The limit of one task keeps the order; trials that share nodes with each other would disturb each other.
    """
    count = len(planned(experiment))
    folder, name = shlex.quote(str(experiment.folder)), shlex.quote(path.name)
    seconds = experiment.program.time_limit_s * 1.2 + 60
    hours, rest = divmod(math.ceil(seconds), 3600)
    write_text(
        path,
        f"""#!/bin/sh
# Trials of {experiment.title or experiment.folder.name!r}, one a task, in the order of the run sheet.
# Build first, on a node of the same kind:  phasewright spt run {folder} --yes --check
# Submit, and when all have ended:          phasewright spt run {folder} --collect
#SBATCH --job-name=spt
#SBATCH --array=1-{count}%1
#SBATCH --exclusive
#SBATCH --time={hours:02d}:{rest // 60:02d}:{rest % 60:02d}
# Without a batch system: for i in $(seq 1 {count}); do SLURM_ARRAY_TASK_ID=$i sh {name}; done
exec phasewright spt run {folder} --yes --trial "$SLURM_ARRAY_TASK_ID"
""",
    )


def run_one(experiment: Experiment, order: int) -> Trial:
    """Run one trial of the plan and write its result, unless it is there already.

    Raises
    ------
    ExperimentError : there is no such trial. RunError : it cannot be built.
    """
    keys = planned(experiment)
    if order not in keys:
        raise ExperimentError(f"has {len(keys)} trials, there is no number {order}", file=experiment.folder)
    trial = Runner(experiment).single(keys[order], order)
    folder = experiment.folder / RESULTS
    folder.mkdir(exist_ok=True)
    said = {name: getattr(trial, name) for name in Trial.__dataclass_fields__}
    said["responses"] = list(trial.responses)
    said["identity"] = experiment.identity()
    write_text(folder / f"{order}.json", json.dumps(said))
    return trial


def collect(experiment: Experiment) -> int:
    """Add results that the journal does not have yet; their number.

    Raises
    ------
    ExperimentError : a result is damaged or belongs to something else.
    """
    keys, added = planned(experiment), 0
    identity = json.loads(json.dumps(experiment.identity()))
    with Journal(experiment) as journal:
        known = {(t.order, t.attempt, t.start) for t in journal.trials}
        for order, key in keys.items():
            path = experiment.folder / RESULTS / f"{order}.json"
            if not path.exists():
                continue
            trial = _read(path, identity, key, order)
            if (trial.order, trial.attempt, trial.start) in known:
                continue
            if key not in state_of(experiment, journal.trials).good:
                journal.add(trial)
                added += 1
    return added


def _read(path: Path, identity: object, key: tuple[int, int], order: int) -> Trial:
    try:
        if path.stat().st_size > _LARGEST:
            raise ValueError("it is too large")
        said = json.loads(path.read_text(encoding="utf-8"))
        if said.pop("identity") != identity:
            raise ExperimentError("was measured with another program or design", file=path, hint="remove it")
        trial = Trial(**{**said, "responses": tuple(float(v) for v in said["responses"])})
        if (trial.replicate, trial.treatment, trial.order) != (*key, order):
            raise ValueError("it is another trial")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ExperimentError(f"is no result of a trial ({error})", file=path, hint="remove it") from None
    return trial
