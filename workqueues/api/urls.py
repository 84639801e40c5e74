"""Addresses of demand, below /api/v1/."""

from __future__ import annotations

from rest_framework.routers import SimpleRouter

from workqueues.api.tasks import TaskViewSet

router = SimpleRouter()
router.register("tasks", TaskViewSet, basename="task")

urlpatterns = router.urls
