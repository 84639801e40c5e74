"""The parts of the client that need no server."""

from __future__ import annotations

import io
import json
import random
from datetime import datetime, timezone

import pytest

from broker_site.client.command import payload, terminal
from broker_site.client.command.grammar import divided, parsed, parser_of
from broker_site.client.command.main import VERBS
from broker_site.client.command.printer import Column, Printer, column
from broker_site.client.command.session import filters
from broker_site.client.drafts import read
from broker_site.client.errors import Refused, Unusable
from broker_site.client.outputs import Damaged, adler32, file_name, same
from broker_site.client.patience import asked_pause, own_pause
from broker_site.client.progress import Pace, Progress, progress_of

NOW = datetime(2026, 11, 26, 12, 0, 0, tzinfo=timezone.utc)  # noqa: UP017 - as the client says it


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7.0),
        ("Thu, 26 Nov 2026 12:00:30 GMT", 30.0),
        ("Thu, 26 Nov 2026 11:00:00 GMT", 0.0),
        ("soon", None),
        ("", None),
        (None, None),
        ("-3", None),
        ("\u0664", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(text: str | None, seconds: float | None) -> None:
    assert asked_pause(text, NOW) == seconds


def test_own_pauses_double_up_to_a_bound_and_differ() -> None:
    dice = random.Random(1)
    for tries, most in ((1, 0.5), (2, 1.0), (3, 2.0), (9, 15.0), (5000, 15.0)):
        pauses = {own_pause(tries, dice) for _ in range(50)}
        assert most / 2 <= min(pauses) <= max(pauses) <= most
        assert len(pauses) > 40


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("Zürich 東京", "Zürich 東京"),
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\u009b31m", "\\x9b31m"),
        ("\u202etxt.exe", "\\u202etxt.exe"),
        ("\u2066x\u2069\ufeff\u200b", "\\u2066x\\u2069\\ufeff\\u200b"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_what_is_no_letter_is_written_out(text: str, shown: str) -> None:
    assert terminal.safe(text) == shown


def test_texts_are_cut_by_the_columns_that_they_take() -> None:
    assert terminal.cut("abcdef", 6) == "abcdef"
    assert terminal.cut("abcdefg", 6) == "abcde…"
    assert terminal.width("東京") == 4
    assert terminal.cut("東京都", 5) == "東京…"
    assert terminal.width("e\u0301") == 1


@pytest.mark.parametrize(
    ("seconds", "text"), [(4.4, "4 s"), (61, "1 min 1 s"), (7300, "2 h 1 min"), (200_000, "2 d 7 h"), (0, "0 s")]
)
def test_spans_have_two_units(seconds: float, text: str) -> None:
    assert terminal.span(seconds) == text


def dataset(**more: object) -> dict[str, object]:
    counters = {"n_files_to_be_used": 10, "n_files_used": 6, "n_files_finished": 3, "n_files_failed": 1}
    return {"type": "input", "master_id": None, **counters, **more}


def test_progress_counts_the_masters_of_a_task() -> None:
    found = progress_of([dataset(), dataset(type="pseudo_input"), dataset(type="output"), dataset(master_id=4)])
    assert found == Progress(done=6, failed=2, in_jobs=4, total=20)
    assert (found.left, found.percent) == (8, 30)
    assert progress_of([]) == Progress()
    assert Progress().percent == 0


def test_an_end_is_guessed_from_the_rate_of_the_last_minutes_once_enough_is_done() -> None:
    pace = Pace()
    pace.note(0.0, Progress(done=0, total=100))
    assert (pace.per_minute, pace.seconds_left) == (None, None)
    pace.note(60.0, Progress(done=10, total=100))
    assert (pace.per_minute, pace.seconds_left) == (10.0, None)
    pace.note(120.0, Progress(done=30, failed=10, total=100))
    assert (pace.per_minute, pace.seconds_left) == (20.0, 180.0)
    for minute in range(3, 20):
        pace.note(60.0 * minute, Progress(done=30, failed=10, total=100))
    assert (pace.per_minute, pace.seconds_left) == (0.0, None)


def items(*words: str, inputs: tuple[str, ...] = (), outputs: tuple[str, ...] = ()) -> list[tuple[object, ...]]:
    made = payload.items("t", words, inputs, outputs)
    return [
        (each.get("param_type", each["type"]), each.get("dataset"), each["value"], each.get("hidden", False)) for each in made
    ]


def test_words_of_a_command_line_become_items_in_their_order() -> None:
    assert items("--in", "%IN", "-n=%MAXEVENTS", "a b", "50%%", "it's", inputs=("d.one", "d.two"), outputs=("o.root",)) == [
        ("constant", None, "--in", False),
        ("input", "d.one", "${IN/L}", False),
        ("number", None, "-n=${MAXEVENTS}", False),
        ("constant", None, "'a b'", False),
        ("constant", None, "50%", False),
        ("constant", None, "'it'\"'\"'s'", False),
        ("input", "d.two", "${IN2/L}", True),
        ("output", "t.o.root", "t.${SN}.o.root", True),
    ]
    assert items() == [("constant", None, "", False)]
    assert items("%SEQ", "") == [("pseudo_input", "seq_number", "${SEQNUMBER}", False), ("constant", None, "''", False)]


@pytest.mark.parametrize("word", ["%IN", "%OUT", "%IN2", "%RNDM%SEQ"])
def test_a_mark_for_which_there_is_nothing_is_refused(word: str) -> None:
    with pytest.raises(Unusable):
        items(word)
    with pytest.raises(Unusable, match="No name"):
        payload.items("", ["a"], [], [])


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc/x", "a\\b", "a\nb", "a\x1b"])
def test_a_name_that_leads_out_of_the_folder_is_no_file(name: str) -> None:
    with pytest.raises(Unusable, match="Not the name of a file"):
        file_name({"lfn": name})


def test_a_file_is_known_by_size_and_checksum() -> None:
    content = b"some bytes"
    assert same(content, {"fsize": 10, "checksum": f"ad:{adler32(content)}"})
    assert same(content, {"fsize": 10, "checksum": adler32(content)})
    assert not same(content, {"fsize": 10, "checksum": adler32(b"some bytez")})
    assert not same(content, {"fsize": 11, "checksum": adler32(content)})
    assert issubclass(Damaged, Exception)


def test_json_alone_takes_no_word_and_what_stands_behind_two_dashes_is_kept() -> None:
    assert divided(["show", "--json", "7"]) == (["show", "--json=", "7"], [])
    assert divided(["submit", "--", "run", "--", "-x"]) == (["submit"], ["run", "--", "-x"])
    options = parsed(parser_of(VERBS), ["ls", "-n", "3", "a=1", "-q", "b=2"])
    assert (options.filters, options.limit, options.quiet) == (["a=1", "b=2"], 3, True)


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (("shares",), "share"),
        (("job", "logs", "7"), "log"),
        (("errors", "--by", "sites"), "site"),
        (("completion", "bsh"), "bash"),
    ],
)
def test_a_mistyped_word_is_answered_with_the_nearest_one(
    words: tuple[str, ...], near: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parsed(parser_of(VERBS), words)
    assert (ended.value.code, f"the nearest one is '{near}'" in capsys.readouterr().err) == (2, True)


def test_columns_that_yield_are_cut_before_the_last_one_has_no_room() -> None:
    out = io.StringIO()
    columns = (column("id", right=True), Column("changes", lambda row: row["changes"], yields=True), column("why"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("COLUMNS", "80")
        Printer(out, "table").rows([{"id": 7, "changes": "many words " * 40, "why": "the demo compresses time"}], columns)
    _, line = out.getvalue().splitlines()
    assert len(line) <= 80
    assert line.startswith(" 7  many words") and line.endswith("…  the demo compresses time")


def test_words_that_would_say_more_than_was_meant_are_refused() -> None:
    assert filters(["status=failed,cancelled", "task_name=a=b"]) == {"status": "failed,cancelled", "task_name": "a=b"}
    for words, told in ((["user_name=ada", "user_name=eve"], "Said twice"), (["status"], "Not NAME=VALUE"), (["=x"], "Not NAME")):
        with pytest.raises(Unusable, match=told):
            filters(words)


def test_a_draft_whose_entries_cannot_be_told_apart_is_none() -> None:
    for vo in (["demo"], None, 3):
        with pytest.raises(Unusable, match=r"shares\[0\] \(MC\) has a vo that is no text"):
            read(json.dumps({"shares": [{"name": "MC", "vo": vo, "value": 1}]}))


def test_the_time_of_a_row_is_told_to_the_second() -> None:
    assert column("at").of({"at": "2026-11-26T12:00:30.123456Z"}) == "2026-11-26 12:00:30"


@pytest.mark.parametrize(
    ("status", "code"), [(400, 5), (401, 4), (403, 4), (404, 3), (408, 6), (409, 5), (422, 5), (429, 6), (500, 6), (503, 6)]
)
def test_each_status_has_its_exit_code(status: int, code: int) -> None:
    refused = Refused(status, {"title": "No", "errors": [{"field": "a", "rule": "b", "message": "c"}, 3, {"field": None}]})
    assert refused.exit_code == code
    assert refused.faults[0].field == "a"
    assert Refused(500, {"errors": "strange"}).faults == ()
