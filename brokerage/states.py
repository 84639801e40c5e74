"""The state machines of a job and of a transfer.

States and arrows of jobs: facts on jobs 1.5, reduced as decision E2 says (row J5): a job is inserted in the state that it reaches
at once, and never goes back from `sent` to `activated`: a job whose lease ends fails or is closed, and its files go back.
Of transfers: facts on data movement 5 (decision I2).
"""

from functools import cached_property

from broker_site.foundation.kernel.machine import Machine, Names


class JobMachine(Machine):
    """The states of a job, and the sets of them that matter."""

    leased = Names("sent starting running")
    """A pilot holds the job: lease_until and lease_holder are set exactly in these."""

    starting = Names("sent starting")
    """A pilot has the job, the payload has not begun."""

    heartbeat = Names("starting running")
    """What a sign of life may say; where nothing else is known, only these send any."""

    reported = Names("finished failed")
    """What the last report of a pilot may say."""

    delivering = Names("holding transferring merging")
    """The payload has ended, the output is on its way: the job neither runs nor waits to."""

    settled = Names("transferring merging")
    """Its pilot's last word was taken, and what it made is registered; its end comes by others."""

    succeeded = Names("merging finished")
    """It has made its outputs, where they are wanted; that they are merged is up to other jobs."""

    moving = Names("assigned transferring")
    """Files are brought for it: it has wishes for transfers."""

    counted = Names("defined assigned activated starting running")
    """What brokers, shares and throttler count at a queue; a job that was sent counts as starting."""

    tried = Names("finished failed closed")
    """Ends that say something of the queue; who cancels a job says nothing of it."""

    unsuccessful = Names("failed closed")
    """Ends with an error of their own, of which a task is told."""

    got_on = Names("finished cancelled")
    """Ends that say nothing against its queue."""

    spared = Names("running holding transferring merging")
    """A soft finish of the task lets it end by itself (facts on commands); what waits to be merged is merged."""

    ready_or_held = Names("activated throttled")
    """It would be handed out, or is held back from that while its task is paused."""

    inactive = Names("activated starting")
    """At an inactive queue a job of high priority stays so for a shorter time (seed 000)."""

    zero_limit = Names("defined holding")
    """A longest time of 0 means the default, as practice reads these keys (facts on timeouts 4.1)."""

    @cached_property
    def waiting(self) -> Names:
        """No pilot has had the job."""
        return self.live - self.leased - self.delivering

    @cached_property
    def begun(self) -> Names:
        """Its payload has begun."""
        return self.live - self.waiting - self.starting

    @cached_property
    def placed(self) -> Names:
        """Counted at a queue, and no pilot has had the job."""
        return self.counted & self.waiting


JOB = JobMachine(
    "job",
    """
# event   | from                                                                 | to
insert    | -                                                                    | pending defined waiting assigned activated
define    | pending                                                              | defined
assign    | defined                                                              | assigned
wait      | defined                                                              | waiting
activate  | defined assigned throttled                                           | activated
throttle  | activated                                                            | throttled
send      | activated                                                            | sent
start     | sent                                                                 | starting
run       | sent starting                                                        | running
hold      | sent starting running                                                | holding
transfer  | running holding                                                      | transferring
merge     | holding                                                              | merging
finish    | defined holding transferring merging                                 | finished
fail      | defined sent starting running holding transferring merging           | failed
close     | pending defined waiting assigned throttled activated sent starting running holding merging | closed
cancel    | pending defined waiting assigned throttled activated sent starting running holding transferring merging | cancelled
""",
    final="finished failed cancelled closed",
)


class TransferMachine(Machine):
    """The states of a transfer, and the sets of them that matter."""

    active = Names("submitting submitted")
    """It takes room on its link and at its storages."""

    open = Names("queued submitting submitted")
    """It will bring the file, or say why not: at most one such transfer per file and destination."""


TRANSFER = TransferMachine(
    "transfer",
    """
# event   | from                        | to
ask       | -                           | queued
claim     | queued                      | submitting
submit    | submitting                  | submitted
try_again | submitting submitted        | queued
finish    | queued submitting submitted | done
fail      | queued submitting submitted | failed
cancel    | queued submitting submitted | cancelled
""",
)

COUNTED_AS = {"sent": "starting", **{state: state for state in JOB.counted}}
"""State of a job -> the state as which it counts at its queue; others do not count there."""

STORAGE_DOWN = "storage_down"
"""Sub-status of a job that was closed because a storage was down: no try of its files, and no word about the queue."""

INPUT_MISSING = "input_missing"
"""Sub-status of a job that was closed because inputs could not be read: a try of its files, which wait as after a failure."""

PILOT_CLOSED, OUTPUT_EXISTS = "pilot_closed", "output_exists"
"""Sub-status of a job that was closed because its pilot stopped, or found its output on storage: a try of its files, no more."""

TRANSFER_FAILED = "transfer_failed"
"""Sub-status of a job that was closed, or failed, because a file that it needs or made could not be brought to its place."""

MERGE_FAILED, MERGE_GONE = "merge_failed", "merge_gone"
"""Sub-status of a job whose outputs could not be merged, and of a merge job that ended with a job that it was to merge."""

GUARDED = ((JOB, "brokerage_job", "TRUE"), (TRANSFER, "brokerage_transfer", "TRUE"))
