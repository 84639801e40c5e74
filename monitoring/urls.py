"""Addresses of the pages. Every list is also there as JSON and CSV: `/tasks/`, `/tasks.json`, `/tasks.csv`."""

from __future__ import annotations

from itertools import chain

from django.urls import URLPattern, path, re_path

from monitoring.views import compare
from monitoring.views.api import api, api_operation
from monitoring.views.asks import job_waiting_data, queue_asks_data
from monitoring.views.bulk import bulk, bulk_new
from monitoring.views.configuration import change_set, config, config_draft, config_key
from monitoring.views.data import dataset, file
from monitoring.views.details import home, job, queue, task
from monitoring.views.draft_import import config_import
from monitoring.views.glossary import glossary
from monitoring.views.history import queue_plots, share
from monitoring.views.job_errors import errors
from monitoring.views.job_files import job_log, job_log_file, job_log_text, job_output
from monitoring.views.listing import LongList, ShortList
from monitoring.views.lists import LISTS, view_of
from monitoring.views.my_work import mine
from monitoring.views.pilots import pilot
from monitoring.views.proposals import proposal
from monitoring.views.search import search
from monitoring.views.shares_edit import shares_edit
from monitoring.views.submission import submission_site
from monitoring.views.task_history import task_plots
from monitoring.views.throughput import throughput, throughput_data
from monitoring.views.tokens import tokens
from monitoring.views.transfers import link, transfer
from monitoring.views.tree import child, element, tree
from monitoring.views.users import user, users
from monitoring.views.visitor import appearance, login, logout
from monitoring.views.why import brokerage, what_if


def _list(listing: LongList | ShortList) -> list[URLPattern]:
    """The page of a list and its data; `/tasks/.json` is the same as `/tasks.json`."""
    view = view_of(listing)
    return [
        path(f"{listing.name}/", view, name=f"page-{listing.name}"),
        re_path(rf"^{listing.name}/?\.(?P<format>json|csv)$", view, name=f"page-{listing.name}-data"),
    ]


urlpatterns = [
    path("", home, name="page-home"),
    path("search/", search, name="page-search"),
    path("search.json", search, {"data": True}, name="page-search-data"),
    path("me/", mine, name="page-me"),
    path("me.json", mine, {"data": True}, name="page-me-data"),
    *chain.from_iterable(_list(listing) for listing in LISTS),
    path("tasks/<int:task_id>/", task, name="page-task"),
    path("tasks/<int:task_id>/plots/", task_plots, name="page-task-plots"),
    re_path(r"^tasks/(?P<task_id>[0-9]{1,18})/plots/?\.(?P<format>json|csv)$", task_plots, name="page-task-plots-data"),
    path("tasks/<int:task_id>/brokerage/", brokerage, name="page-task-brokerage"),
    path("tasks/<int:task_id>/brokerage/what-if/", what_if, name="page-task-what-if"),
    path("queues/<str:name>/", queue, name="page-queue"),
    path("queues/<str:name>/plots/", queue_plots, name="page-queue-plots"),
    re_path(r"^queues/(?P<name>[^/]+)/plots/?\.(?P<format>json|csv)$", queue_plots, name="page-queue-plots-data"),
    re_path(r"^shares/(?P<name>[^/]+?)/?\.(?P<format>json|csv)$", share, name="page-share-data"),
    path("shares/edit/", shares_edit, name="page-shares-edit"),
    path("shares/<str:name>/", share, name="page-share"),
    path("users/", users, name="page-users"),
    re_path(r"^users/?\.(?P<format>json|csv)$", users, name="page-users-data"),
    re_path(r"^users/(?P<name>.+?)/?\.(?P<format>json|csv)$", user, name="page-user-data"),
    path("users/<path:name>/", user, name="page-user"),
    path("jobs/<int:job_id>/", job, name="page-job"),
    path("queues/<str:name>/asks.json", queue_asks_data, name="page-queue-asks"),
    path("jobs/<int:job_id>/waiting.json", job_waiting_data, name="page-job-waiting"),
    path("jobs/<int:job_id>/log/", job_log, name="page-job-log"),
    path("jobs/<int:job_id>/log/text/", job_log_text, name="page-job-log-text"),
    path("jobs/<int:job_id>/log/file/", job_log_file, name="page-job-log-file"),
    path("jobs/<int:job_id>/outputs/<int:file_id>/", job_output, name="page-job-output"),
    path("datasets/<int:dataset_id>/", dataset, name="page-dataset"),
    path("datasets/<int:dataset_id>.json", dataset, {"data": True}, name="page-dataset-data"),
    path("files/<int:file_id>/", file, name="page-file"),
    path("files/<int:file_id>.json", file, {"data": True}, name="page-file-data"),
    path("transfers/<int:transfer_id>/", transfer, name="page-transfer"),
    path("transfers/<int:transfer_id>.json", transfer, {"data": True}, name="page-transfer-data"),
    path("submission/<str:name>/", submission_site, name="page-submission-site"),
    path("links/<str:source>/<str:destination>/", link, name="page-link"),
    path("tree/", tree, name="page-tree"),
    re_path(r"^tree/?\.(?P<format>json|csv)$", tree, name="page-tree-data"),
    path("tree/children/<str:name>/", child, name="page-child"),
    path("tree/children/<str:name>.json", child, {"data": True}, name="page-child-data"),
    path("elements/<int:element_id>/", element, name="page-element"),
    path("elements/<int:element_id>.json", element, {"data": True}, name="page-element-data"),
    path("pilots/<uuid:pilot_id>/", pilot, name="page-pilot"),
    path("pilots/<uuid:pilot_id>.json", pilot, {"data": True}, name="page-pilot-data"),
    path("me/tokens/", tokens, name="page-tokens"),
    path("bulk/new/", bulk_new, name="page-bulk-new"),
    path("bulk/<int:action_id>/", bulk, name="page-bulk"),
    path("bulk/<int:action_id>.json", bulk, {"data": True}, name="page-bulk-data"),
    path("config/", config, name="page-config"),
    re_path(r"^config/?\.(?P<format>json|csv)$", config, name="page-config-data"),
    path("config/draft/", config_draft, name="page-config-draft"),
    path("config/draft/import/", config_import, name="page-config-import"),
    path("config/<path:key>/", config_key, name="page-config-key"),
    path("changes/proposals/<int:proposal_id>/", proposal, name="page-proposal"),
    path("changes/<int:revision>/", change_set, name="page-change-set"),
    path("changes/<int:revision>.json", change_set, {"data": True}, name="page-change-set-data"),
    path("errors/", errors, name="page-errors"),
    re_path(r"^errors/?\.(?P<format>json|csv)$", errors, name="page-errors-data"),
    re_path(r"^errors/sites\.(?P<format>json|csv)$", errors, {"by": "site"}, name="page-errors-sites-data"),
    path("throughput/", throughput, name="page-throughput"),
    re_path(r"^throughput/?\.(?P<format>json|csv)$", throughput_data, name="page-throughput-data"),
    re_path(r"^throughput/waits\.(?P<format>json|csv)$", throughput_data, {"of": "waits"}, name="page-waits-data"),
    path("api/", api, name="page-api"),
    path("api/<slug:operation_id>/", api_operation, name="page-api-operation"),
    path("glossary/", glossary, name="page-glossary"),
    path("compare/tasks/", compare.tasks, name="page-compare-tasks"),
    path("compare/tasks.json", compare.tasks, {"data": True}, name="page-compare-tasks-data"),
    path("compare/queues/", compare.queues, name="page-compare-queues"),
    path("compare/queues.json", compare.queues, {"data": True}, name="page-compare-queues-data"),
    path("login/", login, name="login"),
    path("logout/", logout, name="logout"),
    path("appearance/", appearance, name="appearance"),
]
