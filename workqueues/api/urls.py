"""Addresses of demand: `urlpatterns` below /api/v1/, `page_urlpatterns` below the pages."""

from __future__ import annotations

from django.urls import path

from workqueues.api import child_forms
from workqueues.api.catalogue import CloseDataset, RecoverFiles
from workqueues.api.child_brokers import Children, Tree
from workqueues.api.data import Datasets, Files, TaskDatasets, TaskFiles
from workqueues.api.elements import Elements
from workqueues.api.read_grants import ReadGrants
from workqueues.api.shares import Shares, WorkQueueRows
from workqueues.api.submission_form import submission_page
from workqueues.api.submission_trial import CheckTask
from workqueues.api.task_commands import button_view, rest_view
from workqueues.api.tasks import TaskHistory, Tasks
from workqueues.api.throttling import ThrottleVerdicts
from workqueues.rules.task.commands import COMMANDS

urlpatterns = [
    path("tasks/", Tasks.as_view({"get": "list", "post": "create"}), name="task-list"),
    path("tasks/check/", CheckTask.as_view(), name="task-check"),
    path("tasks/<int:task_id>/", Tasks.as_view({"get": "retrieve"}), name="task-detail"),
    *(path(f"tasks/<int:task_id>/{name}/", rest_view(command), name=f"task-{name}") for name, command in COMMANDS.items()),
    path("tasks/<int:task_id>/history/", TaskHistory.as_view({"get": "list"}), name="task-history"),
    path("tasks/<int:task_id>/datasets/", TaskDatasets.as_view({"get": "list"}), name="task-datasets"),
    path("tasks/<int:task_id>/files/", TaskFiles.as_view({"get": "list"}), name="task-files"),
    path("datasets/", Datasets.as_view({"get": "list"}), name="dataset-list"),
    path("datasets/close/", CloseDataset.as_view(), name="dataset-close"),
    path("datasets/recover/", RecoverFiles.as_view(), name="dataset-recover"),
    path("datasets/<int:dataset_id>/", Datasets.as_view({"get": "retrieve"}), name="dataset-detail"),
    path("files/", Files.as_view({"get": "list"}), name="file-list"),
    path("files/<int:file_id>/", Files.as_view({"get": "retrieve"}), name="file-detail"),
    path("read-grants/", ReadGrants.as_view({"get": "list", "post": "create"}), name="read-grant-list"),
    path("read-grants/<int:grant_id>/", ReadGrants.as_view({"get": "retrieve", "delete": "destroy"}), name="read-grant-detail"),
    path("tree/", Tree.as_view(), name="tree"),
    path("tree/children/", Children.as_view({"get": "list", "post": "create"}), name="child-list"),
    path("tree/children/<str:name>/", Children.as_view({"get": "retrieve"}), name="child-detail"),
    *(
        path(f"tree/children/<str:name>/{act}/", Children.as_view({"post": act}), name=f"child-{act}")
        for act in ("drain", "undrain", "revoke", "renew")
    ),
    path("elements/", Elements.as_view({"get": "list"}), name="element-list"),
    path("elements/<int:element_id>/", Elements.as_view({"get": "retrieve"}), name="element-detail"),
    path("shares/", Shares.as_view(), name="share-list"),
    path("work-queues/", WorkQueueRows.as_view(), name="work-queue-list"),
    path("throttle-verdicts/", ThrottleVerdicts.as_view({"get": "list"}), name="throttle-verdict-list"),
]

page_urlpatterns = [
    path("tasks/submit/", submission_page, name="page-task-submit"),
    path("tree/add-child/", child_forms.add_form, name="page-child-add"),
    path("tree/children/<str:name>/drain/", child_forms.drain_form, name="page-child-drain"),
    path("tree/children/<str:name>/undrain/", child_forms.undrain_form, name="page-child-undrain"),
    path("tree/children/<str:name>/revoke/", child_forms.revoke_form, name="page-child-revoke"),
    path("tree/children/<str:name>/renew/", child_forms.renew_form, name="page-child-renew"),
    *(
        path(f"tasks/<int:task_id>/command/{name}/", button_view(command), name=f"page-task-command-{name}")
        for name, command in COMMANDS.items()
    ),
]
