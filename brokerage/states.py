"""The state machine of a job.

States and arrows: facts on jobs 1.5, reduced as decision E2 says (row J5): a job is inserted in the state that it reaches at
once, and never goes back from `sent` to `activated`: a job whose lease ends fails or is closed, and its files go back.
"""

from broker_site.foundation.kernel.machine import Machine

JOB = Machine(
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

LEASED = ("sent", "starting", "running")
"""States in which a pilot holds the job: lease_until and lease_holder are set exactly in these."""

GUARDED = ((JOB, "brokerage_job", "TRUE"),)
