"""The state machine of elements, the parts of a task that other brokers pull (row W1; facts on work queues b2)."""

from broker_site.foundation.kernel.machine import Machine, Names


class ElementMachine(Machine):
    """The states of an element, and the sets of them that matter."""

    course = Names("Available Negotiating Acquired Running Done Failed CancelRequested Canceled")
    """In their order: of two versions of an element the later state holds."""

    waiting = Names("Available")
    """Any child broker that may have it can pull it."""

    taken = Names("Negotiating Acquired Running CancelRequested")
    """A child broker has it, under a lease."""

    at_work = Names("Acquired Running CancelRequested")
    """The child has said that it has it: its files are the child's."""

    begun = Names("Running CancelRequested")
    """It was a task of the child, or will be none any more: where there is no task, nothing more comes of it."""

    first_told = Names("CancelRequested Running")
    """One element in the first of these gives its task that state while not all have ended."""

    worst = Names("Canceled Failed")
    """One element in the first of these gives its task that end."""

    returnable = Names("Negotiating Acquired Running")
    """Available again once its lease is over; one whose cancellation was asked for is cancelled."""


ELEMENT = ElementMachine(
    "element",
    """
offer    | -                                                      | Available
pull     | Available                                              | Negotiating
acquire  | Negotiating                                            | Acquired
run      | Acquired                                               | Running
finish   | Acquired Running                                       | Done
fail     | Acquired Running                                       | Failed
return   | Negotiating Acquired Running                           | Available
cancel   | Negotiating Acquired Running                           | CancelRequested
canceled | Available Negotiating Acquired Running CancelRequested | Canceled
""",
    final="Done Failed Canceled",
)

GUARDED = ((ELEMENT, "workqueues_element", "TRUE"),)
