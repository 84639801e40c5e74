"""Addresses of supply, below /api/v1/: what pilots and child brokers call first, then what users read."""

from __future__ import annotations

from django.urls import path

from brokerage.api import job_commands, matching, pilots, rebrokering, reports, transfer_commands, tree_messages
from brokerage.api.automatic_steps import TaskSteps
from brokerage.api.bulk import BulkActions, start_form, stop_form
from brokerage.api.configuration import Configuration, ConfigurationChanges
from brokerage.api.configuration_drafts import ConfigurationDraft
from brokerage.api.configuration_form import apply_form, revert_form
from brokerage.api.dataset_places import TaskPlacesView
from brokerage.api.decisions import DecisionsView, TaskDecisionsView
from brokerage.api.grid import FeedsView, GridView, QueuesView, SitesView
from brokerage.api.jobs import JobsView, TaskJobsView
from brokerage.api.last_asks import JobStandingView, QueueAsksView
from brokerage.api.links import Links, OneLink, edit_form
from brokerage.api.look_now import LookAtQueue, LookAtShare, LookAtTask, queue_button, share_button, task_button
from brokerage.api.proposals import Proposals, approve_form, decline_form
from brokerage.api.queue_overrides import QueueOverrides
from brokerage.api.rebrokering import RebrokerAtQueue, RebrokerJob, RebrokerTask
from brokerage.api.saved_views import SavedViews, delete_form, save_form
from brokerage.api.series import SeriesView
from brokerage.api.site_advertisements import SiteAdvertisementView
from brokerage.api.task_changes import form_view, rest_view
from brokerage.api.task_status import TaskStatusView
from brokerage.api.tokens import Tokens, make_form, revoke_form
from brokerage.api.transfer_commands import CancelTransfer, RetryTransfer
from brokerage.api.transfers import Transfers, WhyNotHere
from brokerage.api.what_if import WhatIfView, WhyEmptyView
from workqueues.rules.task.changes import CHANGES

pilot_urlpatterns = [
    path("pilots/", pilots.register_pilot, name="pilot-register"),
    path("pilots/match/", matching.match, name="pilot-match"),
    path("pilots/reports/", reports.reports, name="pilot-reports"),
    path("pilots/settled/", pilots.settled, name="pilot-settled"),
    path("jobs/<int:job_id>/heartbeat/", reports.heartbeat, name="job-heartbeat"),
    path("jobs/<int:job_id>/report/", reports.report, name="job-report"),
]
child_urlpatterns = [
    path("tree/pull/", tree_messages.pull_elements, name="tree-pull"),
    path("tree/fetch/", tree_messages.fetch_work, name="tree-fetch"),
    path("tree/report/", tree_messages.report_elements, name="tree-report"),
]
urlpatterns = [
    *child_urlpatterns,
    *pilot_urlpatterns[1:],  # who registers shares its address with the list of pilots, which stands above this app
    path("jobs/", JobsView.as_view({"get": "list"}), name="job-list"),
    path("jobs/<int:job_id>/", JobsView.as_view({"get": "retrieve"}), name="job-detail"),
    path("tasks/<int:task_id>/jobs/", TaskJobsView.as_view({"get": "list"}), name="task-jobs"),
    path("tasks/<int:task_id>/decisions/", TaskDecisionsView.as_view({"get": "list"}), name="task-decisions"),
    path("tasks/<int:task_id>/waiting/", TaskStatusView.as_view({"get": "retrieve"}), name="task-waiting"),
    *(path(f"tasks/<int:task_id>/{name}/", rest_view(change), name=f"task-{name}") for name, change in CHANGES.items()),
    path("tasks/<int:task_id>/steps/", TaskSteps.as_view({"get": "retrieve"}), name="task-steps"),
    path("tasks/<int:task_id>/places/", TaskPlacesView.as_view({"get": "retrieve"}), name="task-places"),
    path("tasks/<int:task_id>/what-if/", WhatIfView.as_view({"post": "ask"}), name="task-what-if"),
    path("decisions/<int:decision_id>/", DecisionsView.as_view({"get": "retrieve"}), name="decision-detail"),
    path("grid/", GridView.as_view({"get": "retrieve"}), name="grid-document"),
    path("queues/", QueuesView.as_view({"get": "list"}), name="queue-list"),
    path("tasks/<int:task_id>/look/", LookAtTask.as_view(), name="task-look"),
    path("queues/<str:name>/overrides/", QueueOverrides.as_view(), name="queue-overrides"),
    path("queues/<str:name>/look/", LookAtQueue.as_view(), name="queue-look"),
    path("shares/<str:name>/look/", LookAtShare.as_view(), name="share-look"),
    path("queues/<str:name>/rebroker/", RebrokerAtQueue.as_view(), name="queue-rebroker"),
    path("tasks/<int:task_id>/rebroker/", RebrokerTask.as_view(), name="task-rebroker"),
    path("jobs/kill/", job_commands.KillJobs.as_view(), name="job-kill-many"),
    path("jobs/<int:job_id>/kill/", job_commands.KillJob.as_view(), name="job-kill"),
    path("jobs/<int:job_id>/retry/", job_commands.RetryJob.as_view(), name="job-retry"),
    path("tasks/<int:task_id>/kill-jobs/", job_commands.KillJobsOfTask.as_view(), name="task-kill-jobs"),
    path("jobs/<int:job_id>/waiting/", JobStandingView.as_view({"get": "retrieve"}), name="job-waiting"),
    path("jobs/<int:job_id>/rebroker/", RebrokerJob.as_view(), name="job-rebroker"),
    path("queues/<str:name>/asks/", QueueAsksView.as_view({"get": "retrieve"}), name="queue-asks"),
    path("queues/<str:name>/why-empty/", WhyEmptyView.as_view({"get": "retrieve"}), name="queue-why-empty"),
    path("queues/<str:name>/", QueuesView.as_view({"get": "retrieve"}), name="queue-detail"),
    path("tokens/", Tokens.as_view({"get": "list", "post": "create"}), name="token-list"),
    path("tokens/<int:token_id>/", Tokens.as_view({"delete": "destroy"}), name="token-detail"),
    path("bulk/", BulkActions.as_view({"get": "list", "post": "create"}), name="bulk-list"),
    path("bulk/<int:action_id>/", BulkActions.as_view({"get": "retrieve"}), name="bulk-detail"),
    path("bulk/<int:action_id>/stop/", BulkActions.as_view({"post": "stop"}), name="bulk-stop"),
    path("bulk/<int:action_id>/targets/", BulkActions.as_view({"get": "targets"}), name="bulk-targets"),
    path("transfers/", Transfers.as_view({"get": "list"}), name="transfer-list"),
    path("transfers/why/", WhyNotHere.as_view(), name="transfer-why"),
    path("transfers/<int:transfer_id>/", Transfers.as_view({"get": "retrieve"}), name="transfer-detail"),
    path("transfers/<int:transfer_id>/retry/", RetryTransfer.as_view(), name="transfer-retry"),
    path("transfers/<int:transfer_id>/cancel/", CancelTransfer.as_view(), name="transfer-cancel"),
    path("links/", Links.as_view(), name="link-list"),
    path("links/<str:source>/<str:destination>/", OneLink.as_view(), name="link-detail"),
    path("config/", Configuration.as_view(), name="config-list"),
    path("config/draft/", ConfigurationDraft.as_view(), name="config-draft"),
    path("config/changes/", ConfigurationChanges.as_view({"get": "list", "post": "create"}), name="config-changes"),
    path("config/changes/<int:revision>/", ConfigurationChanges.as_view({"get": "retrieve"}), name="config-change"),
    path("config/changes/<int:revision>/revert/", ConfigurationChanges.as_view({"post": "revert"}), name="config-revert"),
    path("saved-views/", SavedViews.as_view({"get": "list", "post": "create"}), name="saved-view-list"),
    path("saved-views/<int:view_id>/", SavedViews.as_view({"get": "retrieve", "delete": "destroy"}), name="saved-view-detail"),
    path("config/proposals/", Proposals.as_view({"get": "list", "post": "create"}), name="config-proposals"),
    path("config/proposals/<int:proposal_id>/", Proposals.as_view({"get": "retrieve"}), name="config-proposal"),
    path("config/proposals/<int:proposal_id>/approve/", Proposals.as_view({"post": "approve"}), name="config-proposal-approve"),
    path("config/proposals/<int:proposal_id>/decline/", Proposals.as_view({"post": "decline"}), name="config-proposal-decline"),
    path("series/", SeriesView.as_view(), name="series"),
    path("feeds/", FeedsView.as_view({"get": "list"}), name="feed-list"),
    path("sites/", SitesView.as_view({"get": "list"}), name="site-list"),
    path("sites/<str:site>/advertisement/", SiteAdvertisementView.as_view(), name="site-advertisement"),
]

page_urlpatterns = [
    *(
        path(f"tasks/<int:task_id>/change/{name}/", form_view(change), name=f"page-task-change-{name}")
        for name, change in CHANGES.items()
    ),
    path("tasks/<int:task_id>/look/", task_button, name="page-task-look"),
    path("queues/<str:name>/look/", queue_button, name="page-queue-look"),
    path("shares/<str:name>/look/", share_button, name="page-share-look"),
    path("queues/<str:name>/rebroker/", rebrokering.queue_button, name="page-queue-rebroker"),
    path("tasks/<int:task_id>/rebroker/", rebrokering.task_button, name="page-task-rebroker"),
    path("jobs/<int:job_id>/rebroker/", rebrokering.job_button, name="page-job-rebroker"),
    path("jobs/<int:job_id>/kill/", job_commands.kill_button, name="page-job-kill"),
    path("jobs/<int:job_id>/retry/", job_commands.retry_button, name="page-job-retry"),
    path("tasks/<int:task_id>/kill-jobs/", job_commands.kill_all_button, name="page-task-kill-jobs"),
    path("transfers/<int:transfer_id>/retry/", transfer_commands.retry_button, name="page-transfer-retry"),
    path("transfers/<int:transfer_id>/cancel/", transfer_commands.cancel_button, name="page-transfer-cancel"),
    path("links/<str:source>/<str:destination>/edit/", edit_form, name="page-link-edit"),
    path("me/tokens/make/", make_form, name="page-token-make"),
    path("me/tokens/<int:token_id>/revoke/", revoke_form, name="page-token-revoke"),
    path("views/<int:view_id>/delete/", delete_form, name="page-view-delete"),
    path("views/<str:list_name>/save/", save_form, name="page-view-save"),
    path("bulk/start/", start_form, name="page-bulk-start"),
    path("bulk/<int:action_id>/stop/", stop_form, name="page-bulk-stop"),
    path("config/apply/", apply_form, name="page-config-apply"),
    path("changes/proposals/<int:proposal_id>/approve/", approve_form, name="page-proposal-approve"),
    path("changes/proposals/<int:proposal_id>/decline/", decline_form, name="page-proposal-decline"),
    path("changes/<int:revision>/revert/", revert_form, name="page-change-revert"),
]
