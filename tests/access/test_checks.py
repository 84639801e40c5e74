"""The system check: a route without a permission cannot be deployed."""

from __future__ import annotations

from broker_site.foundation.access.routes import check_routes, route_errors


def test_each_fault_of_a_route_is_an_error() -> None:
    assert {
        (error.id, error.msg.split(" ", 2)[0], error.msg.split(" ", 2)[1]) for error in route_errors("tests.access.faulty_urls")
    } == {
        ("access.E001", "*", "/unguarded/"),
        ("access.E001", "*", "/inner/template/"),
        ("access.E002", "GET", "/api/unknown/"),
        ("access.E001", "GET", "/api/allowing/"),
        ("access.E003", "*", "/api/jobs/<int:job>/"),
        ("access.E001", "POST", "/api/^half/$"),
        ("access.E001", "*", "/admin-beside/"),
    }


def test_the_sample_site_is_in_order() -> None:
    assert route_errors("tests.access.sample_urls") == []


def test_the_real_site_is_in_order() -> None:
    assert check_routes() == []
