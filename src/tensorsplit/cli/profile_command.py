"""``tensorsplit profile``: what the installed version of an engine runs, measured here."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import click

from tensorsplit.cli.files import outputs
from tensorsplit.cli.screen import examples, note, progress_of, say
from tensorsplit.cli.sentences import amount, tr
from tensorsplit.cli.words import JOBS_OPTION, SECONDS, subject_word
from tensorsplit.conformance import SECONDS_OF_A_CASE
from tensorsplit.core.errors import printable


@click.command(epilog=examples("profile onnxruntime", "profile my_adapter.py --jobs 4"))
@click.argument("engine", type=subject_word("engine"))
@JOBS_OPTION
@click.option(
    "--timeout",
    "seconds",
    metavar="SECONDS",
    type=SECONDS,
    default=SECONDS_OF_A_CASE,
    show_default=True,
    help="How long the engine may take for one case.",
)
def profile(*, engine: str, jobs: int | None, seconds: float) -> int:
    """Measure what the installed version of an engine runs, for `check` and `lower`.

    All cases of the conformance suite are run, which takes minutes. The profile is kept in the
    user's cache, where `--for ENGINE` finds it from then on. ENGINE is one that `tensorsplit
    conformance` knows, or the path of an adapter (.py).
    """
    from tensorsplit.conformance.cases import all_cases
    from tensorsplit.conformance.profile import profile_files
    from tensorsplit.conformance.runner import Subject, run
    from tensorsplit.model.profiles import cache_folder

    folder, subject = cache_folder(), Subject.engine(engine)
    target = outputs()
    target.create_dirs = target.overwrite = True
    target.folders.append(folder)
    target.check()
    cases = [case for case in all_cases() if case.model_format in subject.traits.formats]
    with progress_of("profile", len(cases)) as advance:
        document = run([subject], cases, seconds=seconds, jobs=jobs, progress=advance, note=note)
        ((name, text),) = profile_files(document)
    target.write({folder / name: text})
    _summarise(json.loads(text), str(folder / name))
    return 0


def _summarise(made: dict[str, Any], path: str) -> None:
    """Print how many entries of which kind a profile has, and where it is."""
    extents = Counter(entry["extent"] for entry in made["entries"])
    kinds = ", ".join(f"{count} {extent}" for extent, count in sorted(extents.items()))
    total = amount(sum(extents.values()), "limitation")
    say(
        printable(f"{path}: {total}{f' ({kinds})' if kinds else ''}"),
        tr(
            "{cases} failed that no limitation explains",
            cases=amount(len(made["unexplained"]), "case"),
        ),
    )
