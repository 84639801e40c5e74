"""Tokens: what is read of a job token is what was signed, and nothing else is accepted."""

from __future__ import annotations

import string
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from broker_site.foundation.access import tokens
from broker_site.foundation.access.principal import JobClaim
from broker_site.foundation.access.tokens import BadToken, mint_job_token, read_job_token
from broker_site.foundation.kernel import clock

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
BIG = 2**63 - 1
ALPHABET = string.ascii_letters + string.digits + "._-=+/ \n\x00\u0660\u00e9"


def test_a_job_token_says_what_was_signed() -> None:
    with clock.frozen(NOON):
        claim = read_job_token(mint_job_token(7, 3, 60, pilot=12))
    assert claim == JobClaim(job_id=7, epoch=3, expires=int(NOON.timestamp()) + 60, pilot=12)


@given(st.integers(0, BIG), st.integers(0, BIG), st.integers(0, BIG))
def test_any_job_and_epoch_survive_the_way(job_id: int, epoch: int, pilot: int) -> None:
    claim = read_job_token(mint_job_token(job_id, epoch, 60, pilot=pilot))
    assert (claim.job_id, claim.epoch, claim.pilot) == (job_id, epoch, pilot)


def test_a_job_token_dies_with_its_time() -> None:
    with clock.frozen(NOON):
        token = mint_job_token(7, 1, 14.5)
    with clock.frozen(NOON + timedelta(seconds=14)):
        assert read_job_token(token).job_id == 7
    with clock.frozen(NOON + timedelta(seconds=15)), pytest.raises(BadToken, match="expired"):
        read_job_token(token)


def test_every_change_of_one_character_is_refused() -> None:
    token = mint_job_token(7, 1, 600)
    for place in range(len(token)):
        for character in "019af.gZ_ ":
            if token[place] != character:
                with pytest.raises(BadToken):
                    read_job_token(token[:place] + character + token[place + 1 :])


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t + "0",
        lambda t: t[:-1],
        lambda t: t + "\n",
        lambda t: " " + t,
        lambda t: t.upper(),
        lambda t: t.replace("gbj_", "gbp_"),
        lambda t: t.replace("gbj_7", "gbj_07"),
        lambda t: t.replace("gbj_7", "gbj_+7"),
        lambda t: t.replace("gbj_7", "gbj_\u0667"),
        lambda t: t.replace("gbj_7", "gbj_-7"),
        lambda t: t.replace("gbj_7", "gbj_" + "7" * 10_000),
        lambda t: t.rpartition(".")[0],
        lambda t: t.rpartition(".")[0] + ".",
        lambda t: t.rpartition(".")[0] + "." + "0" * 64,
        lambda t: t + "." + t.rpartition(".")[2],
        lambda t: "",
        lambda t: "gbj_",
        lambda t: "gbj_....",
    ],
)
def test_malformed_and_forged_job_tokens_are_refused(change: object) -> None:
    with pytest.raises(BadToken):
        read_job_token(change(mint_job_token(7, 1, 600)))  # type: ignore[operator]


@given(st.text(alphabet=ALPHABET, max_size=200))
def test_no_text_makes_reading_fail_otherwise(text: str) -> None:
    for candidate in (text, "gbj_" + text, "gbj_1.1.99999999999.0." + text):
        with pytest.raises(BadToken):
            read_job_token(candidate)


def test_claims_of_two_tokens_cannot_be_mixed() -> None:
    seven, eight = mint_job_token(7, 1, 600), mint_job_token(8, 1, 600)
    with pytest.raises(BadToken, match="signature"):
        read_job_token(seven.rpartition(".")[0] + "." + eight.rpartition(".")[2])


def test_an_old_key_still_reads_and_the_new_one_signs(settings: Settings) -> None:
    old = mint_job_token(7, 1, 600)
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another key " * 6
    assert read_job_token(old).job_id == 7
    new = mint_job_token(7, 1, 600)
    assert read_job_token(new).job_id == 7
    settings.SECRET_KEY_FALLBACKS = []
    assert read_job_token(new).job_id == 7
    with pytest.raises(BadToken, match="signature"):
        read_job_token(old)


def test_stored_secrets_differ_and_only_their_digest_is_kept() -> None:
    texts = {tokens.new_secret(kind) for kind in ("user", "enrolment", "pilot") for _ in range(100)}
    assert len(texts) == 300
    assert all(tokens.looks_stored(t) for t in texts)
    text = texts.pop()
    assert len(tokens.digest(text)) == 64
    assert text not in tokens.digest(text)
    assert text.startswith(tokens.shown(text))
    assert len(text) - len(tokens.shown(text)) > 30
