"""Invariants of transfers, wishes and copies: who waits has what it waits for under way, and what is told to be there is."""

from __future__ import annotations

from brokerage.queries.invariants.statement import Invariant
from brokerage.rules.transfers.wishes import INPUT_ROLES, OUTPUT_ROLES
from brokerage.states import TRANSFER

_OPEN_WISH = """
EXISTS (SELECT FROM brokerage_transferwish w JOIN brokerage_transfer t ON t.id = w.transfer_id
    WHERE w.job_id = j.id AND w.closed_at IS NULL AND t.ended_at IS NULL AND w.role IN ({roles}))
"""

INVARIANTS = (
    Invariant(
        "transfer_open_once",
        "At most one transfer that is not over brings a file to a place.",
        """
        SELECT 'file ' || file_id || ' to ' || destination || ': ' || count(*) || ' transfers' FROM brokerage_transfer
        WHERE ended_at IS NULL GROUP BY file_id, destination HAVING count(*) > 1
        """,
    ),
    Invariant(
        "transfer_ended",
        "A transfer has ended_at exactly in a final state.",
        """
        SELECT 'transfer ' || id || ' is ' || status || ', ended at ' || coalesce(ended_at::text, 'no time')
        FROM brokerage_transfer WHERE (ended_at IS NOT NULL) <> (status = ANY(%(transfer_final)s))
        """,
    ),
    Invariant(
        "transfer_keyed",
        "A transfer that is under way has a key, a source and a first attempt.",
        f"""
        SELECT 'transfer ' || id || ' is ' || status || ', attempt ' || attempt FROM brokerage_transfer
        WHERE status IN ({TRANSFER.active.sql}) AND (key IS NULL OR source = '' OR attempt < 1)
        """,
    ),
    Invariant(
        "wish_of_open_transfer",
        "No wish is open whose transfer is over.",
        """
        SELECT 'wish ' || w.id || ' of transfer ' || w.transfer_id || ', ' || coalesce(t.status, 'which is not there')
        FROM brokerage_transferwish w LEFT JOIN brokerage_transfer t ON t.id = w.transfer_id
        WHERE w.closed_at IS NULL AND (t.id IS NULL OR t.ended_at IS NOT NULL)
        """,
    ),
    Invariant(
        "assigned_job_waits",
        "A job that is assigned waits for an input that is on its way.",
        f"""
        SELECT 'job ' || j.id || ' of task ' || coalesce(j.task_id::text, 'none') FROM brokerage_job j
        WHERE j.status = 'assigned' AND NOT {_OPEN_WISH.format(roles=INPUT_ROLES.sql)}
        """,
    ),
    Invariant(
        "transferring_job_waits",
        "A job that is transferring waits for an output that is on its way.",
        f"""
        SELECT 'job ' || j.id || ' of task ' || coalesce(j.task_id::text, 'none') FROM brokerage_job j
        WHERE j.status = 'transferring' AND NOT {_OPEN_WISH.format(roles=OUTPUT_ROLES.sql)}
        """,
    ),
    Invariant(
        "input_wish_of_assigned_job",
        "Only a job that is assigned wishes input.",
        f"""
        SELECT 'wish ' || w.id || ' of job ' || w.job_id || ', ' || coalesce(j.status, 'which is not there')
        FROM brokerage_transferwish w LEFT JOIN brokerage_job j ON j.id = w.job_id
        WHERE w.closed_at IS NULL AND w.job_id IS NOT NULL AND w.role IN ({INPUT_ROLES.sql})
            AND j.status IS DISTINCT FROM 'assigned'
        """,
    ),
    Invariant(
        "output_wish_of_transferring_job",
        "Only a job that is transferring wishes output to be brought; a log may be brought when its job has ended.",
        """
        SELECT 'wish ' || w.id || ' of job ' || w.job_id || ', ' || coalesce(j.status, 'which is not there')
        FROM brokerage_transferwish w LEFT JOIN brokerage_job j ON j.id = w.job_id
        WHERE w.closed_at IS NULL AND w.job_id IS NOT NULL AND w.role = 'output' AND j.status IS DISTINCT FROM 'transferring'
        """,
    ),
    Invariant(
        "place_without_the_file",
        "No transfer waits to bring a file to a place that has it.",
        """
        SELECT 'transfer ' || t.id || ' to ' || t.destination
        FROM brokerage_transfer t JOIN workqueues_replica r ON r.file_id = t.file_id AND r.storage = t.destination
        WHERE t.status = 'queued' AND r.state = 'available'
        """,
    ),
    Invariant(
        "done_transfer_has_its_copy",
        "What a transfer brought is there, or its removal or loss is written down.",
        """
        SELECT 'transfer ' || t.id || ' to ' || t.destination FROM brokerage_transfer t
        WHERE t.status = 'done' AND NOT EXISTS (
                SELECT FROM workqueues_replica r WHERE r.file_id = t.file_id AND r.storage = t.destination)
            AND NOT EXISTS (
                SELECT FROM brokerage_replicachange c WHERE c.file_id = t.file_id AND c.storage = t.destination
                    AND c.what IN ('removed', 'bad') AND c.at >= t.ended_at)
        """,
    ),
    Invariant(
        "copy_there_is_not_removed",
        "The removal of a copy that is told to be there has not begun.",
        """
        SELECT 'file ' || file_id || ' at ' || storage || ' is ' || state || ', removed until ' || removal_at
        FROM workqueues_replica WHERE removal_at IS NOT NULL AND state <> 'deleting'
        """,
    ),
    Invariant(
        "transfer_history_path",
        "Each move of a transfer begins where the one before ended and is an arrow of its machine.",
        """
        SELECT 'transfer ' || transfer_id || ', row ' || id || ': ' || old || ' to ' || new || ' after '
            || coalesce(before, 'nothing')
        FROM (SELECT *, lag(new) OVER (PARTITION BY transfer_id ORDER BY id) AS before FROM brokerage_transferchange) c
        WHERE old <> coalesce(before, '-') OR old || '>' || new <> ALL(%(transfer_arrows)s)
        """,
    ),
    Invariant(
        "transfer_history_end",
        "The history of a transfer ends in the state that it has.",
        """
        SELECT 'transfer ' || t.id || ' is ' || t.status || ', its history ends in ' || coalesce(h.new, 'nothing')
        FROM brokerage_transfer t LEFT JOIN (
            SELECT DISTINCT ON (transfer_id) transfer_id, new FROM brokerage_transferchange ORDER BY transfer_id, id DESC
        ) h ON h.transfer_id = t.id WHERE h.new IS DISTINCT FROM t.status
        """,
    ),
)
