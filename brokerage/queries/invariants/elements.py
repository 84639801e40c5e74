"""Invariants of elements: which files wait in them, which their children have, and what became of these."""

from __future__ import annotations

from brokerage.queries.invariants.statement import Invariant
from workqueues.states import INPUT_TYPES
from workqueues.states.elements import ELEMENT

INVARIANTS = (
    Invariant(
        "picked_files_wait_in_an_element",
        "A file that is picked for an element waits in one that is available, or that its child has not confirmed; each of these "
        "has files.",
        f"""
        SELECT coalesce('file ' || f.id || ' waits in element ' || f.element_id, 'element ' || e.id || ' is ' || e.status
            || ' without files')
        FROM (SELECT element_id, min(id) AS id FROM workqueues_file
            WHERE status = 'picked' AND element_id IS NOT NULL GROUP BY 1) f
        FULL JOIN (SELECT id, status FROM workqueues_element
            WHERE status IN ({(ELEMENT.live - ELEMENT.at_work).sql})) e ON e.id = f.element_id
        WHERE f.element_id IS NULL OR e.id IS NULL
        """,
    ),
    Invariant(
        "running_files_are_their_childs",
        "A file of an element is running exactly while a child has the element and uses it.",
        f"""
        SELECT coalesce('file ' || f.id || ' runs in element ' || f.element_id || ', which does not use it',
            'element ' || u.element_id || ' uses file ' || u.file_id || ', which does not run in it')
        FROM (SELECT id, element_id FROM workqueues_file
            WHERE status = 'running' AND element_id IS NOT NULL AND type IN ({INPUT_TYPES.sql})) f
        FULL JOIN (SELECT i.file_id, i.element_id FROM workqueues_elementinput i JOIN workqueues_element e ON e.id = i.element_id
            WHERE i.status = 'live' AND e.try_nr = i.try_nr AND e.status IN ({ELEMENT.at_work.sql})) u
          ON u.file_id = f.id AND u.element_id = f.element_id
        WHERE f.id IS NULL OR u.file_id IS NULL
        """,
    ),
    Invariant(
        "live_uses_are_of_the_present_try",
        "Only the present try of an element that a child has uses files.",
        f"""
        SELECT 'element ' || i.element_id || ', try ' || i.try_nr || ' uses file ' || i.file_id || ', it is ' || e.status
        FROM workqueues_elementinput i JOIN workqueues_element e ON e.id = i.element_id
        WHERE i.status = 'live' AND (e.try_nr <> i.try_nr OR e.status NOT IN ({ELEMENT.at_work.sql}))
        """,
    ),
    Invariant(
        "element_counts_its_files",
        "The files of an element that finished are those that its tries used.",
        """
        SELECT 'element ' || e.id || ' counts ' || e.n_files_finished || ', its tries used ' || coalesce(u.n, 0)
        FROM workqueues_element e LEFT JOIN (
            SELECT element_id, count(*) AS n FROM workqueues_elementinput WHERE status = 'used' GROUP BY 1) u
            ON u.element_id = e.id
        WHERE e.n_files_finished <> coalesce(u.n, 0)
        """,
    ),
    Invariant(
        "element_follows_its_history",
        "An element has the state and epoch of its last history row.",
        """
        SELECT 'element ' || e.id || ' is ' || e.status || ', its history says ' || coalesce(c.new, 'nothing')
        FROM workqueues_element e LEFT JOIN LATERAL (
            SELECT new, epoch FROM workqueues_elementchange c WHERE c.element_id = e.id ORDER BY id DESC LIMIT 1) c ON TRUE
        WHERE (e.status, e.epoch) IS DISTINCT FROM (c.new, c.epoch)
        """,
    ),
)
