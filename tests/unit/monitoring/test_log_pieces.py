"""A log in pieces: whatever it holds and however large it is, a user gets a piece of it or a sentence, and memory stays flat."""

from __future__ import annotations

import gzip
import io
import tarfile
import tracemalloc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from monitoring.log_pieces import NO_SIGN, PIECE, Pieces, Stream, legible, pieces

GB = 10**9
LARGE = 2 * GB
MOST = 100_000_000
FLAT = 2_500_000
"""More bytes than that a look at a log never holds."""


@contextmanager
def memory_flat() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < FLAT
    finally:
        tracemalloc.stop()


def archive(path: Path, members: Mapping[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz", compresslevel=1) as tar:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return path


def look(path: Path, begins: Mapping[str, int] | None = None, most: int = MOST) -> Pieces:
    with path.open("rb") as file:
        return pieces(file, path.name, begins or {}, most)


def one(path: Path, begins: Mapping[str, int] | None = None, most: int = MOST) -> Stream:
    (stream,) = look(path, begins, most).streams
    return stream


def lines(count: int) -> bytes:
    return b"".join(b"line %09d\n" % number for number in range(count))


def test_a_long_stream_is_read_piece_by_piece_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    content = lines(20_000)
    path, begin, text = archive(tmp_path / "log.tgz", {"stdout": content}), 0, ""
    while True:
        stream = one(path, {"stdout": begin})
        text += stream.text
        if stream.later is None:
            break
        begin = stream.end
    assert text.encode() == content
    assert stream.end == stream.size == len(content)


def test_the_links_lead_to_the_beginning_the_earlier_the_later_piece_and_the_end(tmp_path: Path) -> None:
    path = archive(tmp_path / "log.tgz", {"stdout": lines(20_000)})
    last = one(path)
    assert (last.begin, last.end, last.later) == (300_000 - PIECE, 300_000, None)
    assert last.earlier == last.begin - PIECE
    first = one(path, {"stdout": 0})
    assert (first.begin, first.end, first.earlier, first.later) == (0, PIECE, None, PIECE)
    assert first.text.startswith("line 000000000\n")
    assert one(path, {"stdout": 10**18}) == last
    assert one(archive(tmp_path / "short.tgz", {"stdout": b"all of it"})).is_whole


def test_no_character_is_torn_between_two_pieces(tmp_path: Path) -> None:
    text = "€" * 50_000
    path = archive(tmp_path / "log.tgz", {"stdout": text.encode()})
    first = one(path, {"stdout": 0})
    second = one(path, {"stdout": first.later or 0})
    third = one(path, {"stdout": second.later or 0})
    assert NO_SIGN not in first.text + second.text + third.text
    assert first.text + second.text + third.text[-(50_000 - len(first.text + second.text)) :] == text


def test_standard_error_comes_first_and_each_stream_has_its_own_piece(tmp_path: Path) -> None:
    path = archive(tmp_path / "log.tgz", {"pilot.log": b"p", "stdout": lines(20_000), "stderr": b"e"})
    found = look(path, {"stdout": 0})
    assert [(s.name, s.begin) for s in found.streams] == [("stderr", 0), ("stdout", 0), ("pilot.log", 0)]
    assert found.fault == ""


def test_any_piece_of_a_plain_log_of_2_gb_is_there_at_once(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as file:
        file.write(b"begin\n")
        file.seek(LARGE - 4)
        file.write(b"end\n")
    with memory_flat():
        stream = one(path)
        assert (stream.size, stream.end, stream.later, stream.unreached) == (LARGE, LARGE, None, False)
        assert stream.text.endswith("end\n")
        assert one(path, {"log": 0}).text.startswith("begin\n")
        assert one(path, {"log": GB}).begin == GB


@pytest.fixture(scope="module")
def bomb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive whose standard output has 2 GB, which are some MB as it lies there; standard error is before and after it."""
    path, block = tmp_path_factory.mktemp("bomb") / "log.tgz", bytes(50_000_000)
    entry = tarfile.TarInfo("stdout")
    entry.size = LARGE
    before, after = tarfile.TarInfo("stderr"), tarfile.TarInfo("pilot.log")
    before.size = after.size = 512
    # Members of gzip may follow each other: that of the zeros is packed once.
    zeros = gzip.compress(block, 1)
    with path.open("wb") as file:
        file.write(gzip.compress(before.tobuf() + b"x" * 512 + entry.tobuf(), 1))
        for _ in range(LARGE // len(block)):
            file.write(zeros)
        file.write(gzip.compress(after.tobuf() + b"p" * 512 + bytes(1024), 1))
    return path


def test_of_an_archive_of_2_gb_the_beginning_is_shown_and_the_rest_told_with_its_size(bomb: Path) -> None:
    with memory_flat():
        found = look(bomb)
    error, output = found.streams
    assert (error.text, error.is_whole) == ("x" * 512, True)
    assert (output.size, output.begin, output.unreached) == (LARGE, 0, True)
    assert output.later == PIECE
    assert found.fault == "The rest of the archive was not read: a page unpacks 100\N{NARROW NO-BREAK SPACE}MB of it at most."


def test_a_piece_within_reach_of_an_archive_of_2_gb_is_shown_and_none_behind(bomb: Path) -> None:
    with memory_flat():
        assert one_of(look(bomb, {"stdout": 50 * 10**6}), "stdout").begin == 50 * 10**6
        far = one_of(look(bomb, {"stdout": 10**9}), "stdout")
    assert far.begin == far.reach < MOST
    assert (far.later, far.earlier) == (None, far.begin - PIECE)


def one_of(found: Pieces, name: str) -> Stream:
    return next(stream for stream in found.streams if stream.name == name)


def test_where_the_limit_is_set_higher_the_whole_of_the_archive_is_in_reach(bomb: Path) -> None:
    found = look(bomb, most=3 * GB)
    assert [stream.name for stream in found.streams] == ["stderr", "stdout", "pilot.log"]
    assert one_of(found, "stdout").end == LARGE
    assert found.fault == ""


def test_a_head_that_unpacks_to_any_size_is_refused_before_it_is_read(tmp_path: Path) -> None:
    header = tarfile.TarInfo("stdout")
    header.size, header.type = LARGE, tarfile.XHDTYPE
    path = tmp_path / "log.tgz"
    path.write_bytes(gzip.compress(header.tobuf(tarfile.USTAR_FORMAT) + bytes(10_000_000), 1))
    with memory_flat(), pytest.raises(OSError, match="unpacks to more than 1\N{NARROW NO-BREAK SPACE}MB"):
        look(path)


@pytest.mark.parametrize("broken", ["negative", "sparse", "heads", "cut", "noise"])
def test_a_broken_or_hostile_archive_is_told_as_such_in_little_time(tmp_path: Path, broken: str) -> None:
    path = tmp_path / "log.tgz"
    entry = tarfile.TarInfo("stdout")
    heads = {
        "negative": entry.tobuf().replace(b"00000000000\x0000000000000", b"\xff" * 11 + b"\x00" + b"00000000000", 1),
        "sparse": tarfile.TarInfo("a").tobuf(tarfile.PAX_FORMAT)[:156] + b"x" + bytes(355),
        "heads": entry.tobuf() * 3_000,
        "cut": entry.tobuf(),
        "noise": b"\x01\x02" * 4_000,
    }
    packed = gzip.compress(heads[broken] + bytes(1024), 1)
    path.write_bytes(packed[: len(packed) // 2] if broken == "cut" else packed)
    try:
        found = look(path)
    except (OSError, EOFError, tarfile.TarError):
        return
    assert len(found.streams) <= 10
    assert found.fault or broken in ("sparse", "negative")


def test_of_an_archive_that_breaks_off_what_came_before_is_shown(tmp_path: Path) -> None:
    path = archive(tmp_path / "log.tgz", {"stdout": b"so far", "stderr": lines(200_000)})
    path.write_bytes(path.read_bytes()[:20_000])
    found = look(path)
    assert [stream.text for stream in found.streams] == ["so far"]
    assert "The rest of the archive was not read" in found.fault


def test_a_name_that_is_no_utf_8_can_be_asked_for_by_an_address(tmp_path: Path) -> None:
    path = tmp_path / "log.tgz"
    with tarfile.open(path, "w:gz", format=tarfile.GNU_FORMAT, errors="surrogateescape") as tar:
        for name in ("a\udc80", "a\udc81"):
            entry = tarfile.TarInfo(name)
            entry.size = 3
            tar.addfile(entry, io.BytesIO(b"out"))
    names = [stream.name for stream in look(path).streams]
    assert len(set(names)) == 2
    assert all(quote(name) for name in names)
    assert [stream.begin for stream in look(path, {names[1]: 2}).streams] == [0, 2]


def test_a_stream_that_ends_before_the_size_in_its_head_leads_nowhere(tmp_path: Path) -> None:
    entry = tarfile.TarInfo("stdout")
    entry.size = 500
    path = tmp_path / "log.tgz"
    path.write_bytes(gzip.compress(entry.tobuf() + b"so far"))
    found = look(path)
    (stream,) = found.streams
    assert (stream.text, stream.later) == ("so far", None)
    assert "ends too early" in found.fault


def test_what_steers_a_terminal_or_turns_the_direction_is_replaced_and_text_of_any_language_kept() -> None:
    assert legible(b"\x1b[2J\x00a\x9b\r\nb\xff") == f"{NO_SIGN}[2J{NO_SIGN}a{NO_SIGN}\nb{NO_SIGN}"
    assert legible("a\u202eb\u2066c\x85".encode()) == f"a{NO_SIGN}b{NO_SIGN}c{NO_SIGN}"
    assert legible("Größe \tłódź 日本 🙂\n".encode()) == "Größe \tłódź 日本 🙂\n"


def test_what_is_no_text_is_known_as_such(tmp_path: Path) -> None:
    assert one(archive(tmp_path / "b.tgz", {"stdout": bytes(range(256)) * 10})).looks_binary
    assert not one(archive(tmp_path / "t.tgz", {"stdout": b"text with a NUL \x00 in it"})).looks_binary
