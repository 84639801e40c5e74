"""From the words of a command line to its exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from broker_site.client.command import (
    bulk,
    completion,
    configuration,
    job_errors,
    lists,
    login,
    outputs,
    plain_api,
    proposals,
    queue_overrides,
    shares,
    steering,
    submission,
    tokens,
    watching,
    why,
)  # fmt: skip
from broker_site.client.command.grammar import Verb, divided, parsed, parser_of
from broker_site.client.command.session import Session
from broker_site.client.errors import INTERRUPTED, OK, BrokerError

VERBS: Sequence[Verb] = (
    *submission.VERBS, *watching.VERBS, *lists.VERBS, *job_errors.VERBS, *why.VERBS, *steering.VERBS, *bulk.VERBS,
    *queue_overrides.VERBS, *shares.VERBS, *configuration.VERBS, *proposals.VERBS, *outputs.VERBS, *login.VERBS, *tokens.VERBS,
    *plain_api.VERBS, *completion.VERBS,
)  # fmt: skip


def main(words: Sequence[str] | None = None) -> int:
    """Do what the words say; the exit code. Usage errors leave by SystemExit(2), as argparse does."""
    before, behind = divided(sys.argv[1:] if words is None else words)
    parser = parser_of(VERBS)
    options = parsed(parser, before)
    if behind and not options.verb.aside:
        parser.error(f"{' '.join(options.verb.words)} takes nothing behind --")
    options.program, options.parser = behind, parser
    session = Session(options, os.environ)
    try:
        return _run(session)
    except BrokenPipeError:  # whoever read has enough; nothing more may be written when Python ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK


def _run(session: Session) -> int:
    try:
        code = session.options.verb.run(session)
        sys.stdout.flush()
    except BrokerError as problem:
        sys.stdout.flush()
        session.complain(problem)
        return problem.exit_code
    except KeyboardInterrupt:
        session.tell(session.on_interrupt or "interrupted")
        return INTERRUPTED
    return int(code)
