"""Invariants of histories: one row for each move, each along the machine, the last one to where the row is.

Moves of one row wait for each other on its lock, so they are in the order of their epochs (tasks, datasets) or ids (jobs). The
times are those at which transactions began, which two that waited for each other may have in the other order: they are not
compared.
"""

from __future__ import annotations

from brokerage.queries.invariants.statement import Invariant


def _history_of(noun: str) -> tuple[Invariant, Invariant]:
    """What holds of the history of a task or dataset: it has all moves, and ends where the row is."""
    return (
        Invariant(
            f"{noun}_history_complete",
            f"A {noun} has one history row for its insertion and one for each of its moves.",
            f"""
            SELECT '{noun} ' || t.id || ': ' || coalesce(h.n, 0) || ' rows for ' || t.epoch || ' moves'
            FROM workqueues_{noun} t LEFT JOIN (
                SELECT {noun}_id, count(DISTINCT epoch) AS n, count(*) AS rows, max(epoch) AS last FROM workqueues_{noun}change
                GROUP BY {noun}_id
            ) h ON h.{noun}_id = t.id
            WHERE (h.n, h.rows, h.last) IS DISTINCT FROM (t.epoch + 1::bigint, t.epoch + 1::bigint, t.epoch)
            """,
        ),
        Invariant(
            f"{noun}_history_end",
            f"The history of a {noun} ends in the state that it has.",
            f"""
            SELECT '{noun} ' || t.id || ' is ' || t.status || ', its history ends in ' || h.new
            FROM workqueues_{noun} t JOIN (
                SELECT DISTINCT ON ({noun}_id) {noun}_id, new FROM workqueues_{noun}change
                ORDER BY {noun}_id, epoch DESC, id DESC
            ) h ON h.{noun}_id = t.id WHERE h.new <> t.status
            """,
        ),
    )


INVARIANTS = (
    *_history_of("task"),
    Invariant(
        "task_history_path",
        "Each move of a task begins where the one before ended and is an arrow of its machine.",
        """
        SELECT 'task ' || task_id || ', epoch ' || epoch || ': ' || old || ' to ' || new || ' after '
            || coalesce(before, 'nothing')
        FROM (SELECT *, lag(new) OVER (PARTITION BY task_id ORDER BY epoch, id) AS before FROM workqueues_taskchange) c
        WHERE old <> coalesce(before, '-') OR old || '>' || new <> ALL(%(task_arrows)s)
        """,
    ),
    *_history_of("dataset"),
    Invariant(
        "dataset_history_path",
        "Each move of a dataset begins where the one before ended and is an arrow of its machine.",
        """
        SELECT 'dataset ' || c.dataset_id || ', epoch ' || c.epoch || ': ' || c.old || ' to ' || c.new || ' after '
            || coalesce(c.before, 'nothing')
        FROM (SELECT *, lag(new) OVER (PARTITION BY dataset_id ORDER BY epoch, id) AS before FROM workqueues_datasetchange) c
        JOIN workqueues_dataset d ON d.id = c.dataset_id
        WHERE c.old <> coalesce(c.before, '-') OR c.old || '>' || c.new <> ALL(
            CASE WHEN d.type = ANY(%(input_types)s) THEN %(input_dataset_arrows)s ELSE %(output_dataset_arrows)s END)
        """,
    ),
    Invariant(
        "job_history_path",
        "Each move of a job begins where the one before ended and is an arrow of its machine, or opens it to others.",
        """
        SELECT 'job ' || job_id || ', row ' || id || ': ' || old || ' to ' || new || ' after ' || coalesce(before, 'nothing')
        FROM (SELECT *, lag(new) OVER (PARTITION BY job_id ORDER BY id) AS before FROM brokerage_jobchange) c
        WHERE old <> coalesce(before, '-')
            OR old || '>' || new <> ALL(%(job_arrows)s) AND NOT (old = new AND old = ANY(%(ready_or_held)s))
        """,
    ),
    Invariant(
        "job_history_end",
        "The history of a job ends in the state and the epoch that it has.",
        """
        SELECT 'job ' || j.id || ' is ' || j.status || ' of epoch ' || j.epoch || ', its history ends in '
            || coalesce(h.new || ' of epoch ' || h.epoch, 'nothing')
        FROM brokerage_job j LEFT JOIN (
            SELECT DISTINCT ON (job_id) job_id, new, epoch FROM brokerage_jobchange ORDER BY job_id, id DESC
        ) h ON h.job_id = j.id
        WHERE (h.new, h.epoch) IS DISTINCT FROM (j.status, j.epoch)
        """,
    ),
    Invariant(
        "job_epochs_grow",
        "The epoch of a job never goes back, and grows with every lease.",
        """
        SELECT 'job ' || job_id || ', row ' || id || ': epoch ' || epoch || ' after ' || coalesce(before::text, 'nothing')
        FROM (SELECT *, lag(epoch) OVER (PARTITION BY job_id ORDER BY id) AS before FROM brokerage_jobchange) c
        WHERE epoch < coalesce(before, 0) OR new = 'sent' AND epoch <= coalesce(before, 0)
        """,
    ),
)
