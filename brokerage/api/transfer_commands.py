"""Try a transfer again, and cancel it: by REST, and the buttons of the pages."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.guards import page_requires
from broker_site.foundation.access.permissions import may, visible_vos
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.rest import principal
from broker_site.foundation.rest.openapi import refusals
from broker_site.foundation.rest.paging import one_of
from brokerage.api.transfers import READ, TransferShown
from brokerage.ledger.transfers.commands import CannotCommand, cancel_transfer, retry_transfer
from brokerage.models import Transfer, TransferWish
from brokerage.queries.transfer_parts import transfers_in
from workqueues.api.serializers import CommandAsked

RETRY, CANCEL = "transfer:retry", "transfer:cancel"
COMMENT_MOST = 200


class RetryTransfer(APIView):
    permissions = {"post": RETRY}

    @extend_schema(
        tags=["transfers"],
        summary="Try a transfer again",
        description="An attempt that rests is due at once. For one that has ended, a new transfer is asked for by those who "
        "wanted the file there and still do. The answer is the transfer that brings it.",
        request=CommandAsked,
        responses={202: TransferShown, **refusals(400, 404, 409, 422)},
    )
    def post(self, request: Request, transfer_id: int) -> Response:
        """404, then 403, then 422, then 409."""
        caller = principal(request)
        transfer = _permitted(caller, RETRY, transfer_id)
        bringing = _retried(caller, transfer, _comment(request))
        return Response(TransferShown(_shown(bringing)).data, status.HTTP_202_ACCEPTED)


class CancelTransfer(APIView):
    permissions = {"post": CANCEL}

    @extend_schema(
        tags=["transfers"],
        summary="Cancel a transfer",
        description="Jobs that wait for the file are closed, and their inputs go to others; a copy that is being made is given "
        "up. The caller has to be an operator of every VO that waits for the file.",
        request=CommandAsked,
        responses={202: TransferShown, **refusals(400, 404, 409, 422)},
    )
    def post(self, request: Request, transfer_id: int) -> Response:
        """404, then 403, then 422, then 409."""
        caller = principal(request)
        transfer = _permitted(caller, CANCEL, transfer_id)
        _cancelled(caller, transfer, _comment(request))
        return Response(TransferShown(_shown(transfer.id)).data, status.HTTP_202_ACCEPTED)


def _comment(request: Request) -> str:
    body = CommandAsked(data=request.data)
    body.is_valid(raise_exception=True)
    return str(body.validated_data["comment"])


def _permitted(caller: Principal, permission: str, transfer_id: int) -> Transfer:
    transfers = transfers_in(visible_vos(caller, READ)).select_related("file")
    transfer = one_of(transfers, transfer_id, "transfer")
    if not may_command(caller, permission, transfer):
        whose = f"of {transfer.vo}" if not may(caller, permission, transfer.vo) else "of all VOs that wait for the file"
        raise Refused(403, "Not permitted", f"{caller.name} is no operator {whose}.")
    return transfer


def may_command(caller: Principal, permission: str, transfer: Transfer) -> bool:
    """Whether the caller may: in the VO that wished the file first, and in every one whose wish a cancellation would end."""
    vos = {transfer.vo}
    if permission == CANCEL:
        vos |= set(TransferWish.objects.filter(transfer_id=transfer.id, closed_at=None).values_list("vo", flat=True).distinct())
    return all(may(caller, permission, vo) for vo in vos)


def _retried(caller: Principal, transfer: Transfer, comment: str) -> int:
    try:
        return retry_transfer(caller, transfer, comment)
    except CannotCommand as cannot:
        raise Refused(409, "It is not tried again", f"The transfer is not tried again: {cannot}.") from None


def _cancelled(caller: Principal, transfer: Transfer, comment: str) -> int:
    try:
        cancel_transfer(caller, transfer, comment)
    except CannotCommand as cannot:
        raise Refused(409, "It is not cancelled", f"The transfer is not cancelled: {cannot}.") from None
    return transfer.id


def _shown(transfer_id: int) -> Transfer:
    return Transfer.objects.select_related("file__dataset").get(id=transfer_id)


@page_requires(RETRY)
@require_POST
def retry_button(request: HttpRequest, transfer_id: int) -> HttpResponse:
    """Try the transfer again and go to the page of the one that brings the file."""
    return _press(request, RETRY, transfer_id, _retried, "is tried again")


@page_requires(CANCEL)
@require_POST
def cancel_button(request: HttpRequest, transfer_id: int) -> HttpResponse:
    """Cancel the transfer and go back to its page."""
    return _press(request, CANCEL, transfer_id, _cancelled, "is cancelled")


def _press(
    request: HttpRequest, permission: str, transfer_id: int, do: Callable[[Principal, Transfer, str], int], done: str
) -> HttpResponse:
    caller = authenticate(request)
    try:
        transfer = _permitted(caller, permission, transfer_id)
    except Refused as refused:
        raise PermissionDenied(refused.detail) from None
    there = transfer_id
    try:
        there = do(caller, transfer, request.POST.get("comment", "")[:COMMENT_MOST])
    except Refused as refused:
        messages.error(request, refused.detail)
    else:
        messages.success(request, f"Bringing {transfer.file.lfn} to {transfer.destination} {done}.")
    return HttpResponseRedirect(reverse("page-transfer", args=[there]))
