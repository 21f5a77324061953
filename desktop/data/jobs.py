"""Trials of an experiment on a batch system: a job array that runs one trial each, and its collection.

Every job writes its own result below ``results/``; jobs share only the description and the builds, so they
may run on any nodes that see the folder.
"""

from __future__ import annotations

import json
import math
import shlex
from dataclasses import replace
from pathlib import Path

from desktop.data.atomic import write_text
from desktop.data.experiment import Experiment, Journal, Trial, state_of
from desktop.data.runner import Runner
from desktop.errors import ExperimentError, reason

RESULTS = "results"
_LARGEST = 1 << 20


def write_script(experiment: Experiment, path: Path) -> None:
    """A job array (in Slurm's syntax, for which other systems have their own) that runs one trial at a time.

    The limit of one task keeps the order; trials on the same node would disturb each other.
    """
    count = len(experiment.planned())
    folder = shlex.quote(str(experiment.folder))
    program = experiment.program
    seconds = program.time_limit_s * (1 + program.warm_up) * 1.2 + 60
    hours, left = divmod(math.ceil(seconds), 3600)
    write_text(
        path,
        f"""#!/bin/sh
# Trials of {experiment.name!r}, one a task, in the order of the run sheet.
#SBATCH --job-name=spt
#SBATCH --array=1-{count}%1
#SBATCH --exclusive
#SBATCH --time={hours:02d}:{left // 60:02d}:{left % 60:02d}
folder={folder}
# Build first, on a node of the same kind:  phasewright spt run "$folder" --yes --check
# Submit, and when all have ended:          phasewright spt run "$folder" --collect
# Without a batch system:  for i in $(seq 1 {count}); do SLURM_ARRAY_TASK_ID=$i sh THIS_SCRIPT; done
exec phasewright spt run "$folder" --yes --trial "$SLURM_ARRAY_TASK_ID"
""",
    )


def run_one(experiment: Experiment, order: int) -> Trial:
    """Run one trial of the plan and write its result, unless a good one already exists.

    Raises
    ------
    ExperimentError : there is no such trial, or its result is damaged. RunError : it cannot be built.
    """
    keys = experiment.planned()
    if order not in keys:
        raise ExperimentError(f"has {len(keys)} trials, there is no number {order}", file=experiment.folder)
    folder = experiment.folder / RESULTS
    folder.mkdir(exist_ok=True)
    path = folder / f"{order}.json"
    before = _read(path, experiment, keys[order], order) if path.exists() else None
    if before is not None and before.status == "ok":
        return before
    trial = Runner(experiment).single(keys[order], order)
    if before is not None:
        trial = replace(trial, attempt=before.attempt + 1)
    plain = {name: getattr(trial, name) for name in Trial.__dataclass_fields__}
    plain["responses"] = list(trial.responses)
    plain["identity"] = experiment.identity()
    write_text(path, json.dumps(plain))
    return trial


def collect(experiment: Experiment) -> int:
    """Add results that are missing in the journal; returns their number.

    Raises
    ------
    ExperimentError : a result is damaged or belongs to something else.
    """
    keys, added = experiment.planned(), 0
    with Journal(experiment) as journal:
        recorded = {(t.order, t.attempt, t.start) for t in journal.trials}
        for order, key in keys.items():
            path = experiment.folder / RESULTS / f"{order}.json"
            if not path.exists():
                continue
            trial = _read(path, experiment, key, order)
            if (trial.order, trial.attempt, trial.start) in recorded:
                continue
            good = state_of(experiment, journal.trials).good.get(key)
            if good is None or good.status != "ok":
                journal.add(trial)
                added += 1
    return added


def _read(path: Path, experiment: Experiment, key: tuple[int, int], order: int) -> Trial:
    identity = json.loads(json.dumps(experiment.identity()))
    try:
        if path.stat().st_size > _LARGEST:
            raise ValueError("it is too large")
        plain = json.loads(path.read_text(encoding="utf-8"))
        if plain.pop("identity") != identity:
            raise ExperimentError("was measured with another program or design", file=path, hint="remove it")
        trial = Trial(**{**plain, "responses": tuple(float(v) for v in plain["responses"])})
        if (trial.replicate, trial.treatment, trial.order) != (*key, order):
            raise ValueError("it is another trial")
        if trial.status not in ("ok", "failed", "disturbed") or not isinstance(trial.note, str):
            raise ValueError(f"there is no status {trial.status!r}")
        if len(trial.responses) != (0 if trial.status == "failed" else len(experiment.responses)):
            raise ValueError(f"it has {len(trial.responses)} responses")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ExperimentError(
            f"is no result of a trial ({reason(error, 'it is not what was written here')})",
            file=path,
            hint="remove it",
        ) from None
    return trial
