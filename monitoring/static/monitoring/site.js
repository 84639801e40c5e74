// What pages gain from a script; all of them work without.
"use strict";

// A hidden tab asks for nothing.
document.addEventListener("htmx:before:request", (event) => {
  if (document.hidden) event.preventDefault();
});

// What could not be fetched again is shown as old, until it can.
function mark(stale) {
  const panel = document.getElementById("panel");
  if (panel) panel.classList.toggle("stale", stale);
}
document.addEventListener("htmx:error", () => mark(true));
document.addEventListener("htmx:response:error", () => mark(true));
document.addEventListener("htmx:after:swap", () => mark(false));

// Keys: "/" goes to the first filter, or to the search; "g" and a letter go to a page. Not while typing.
const PLACES = { h: "home", m: "me", t: "tasks", f: "datasets", j: "jobs", q: "queues", d: "transfers", a: "agents" };
let going = false;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  const place = going && document.querySelector(`nav a[data-section="${PLACES[event.key]}"]`);
  going = event.key === "g";
  if (place) {
    place.click();
  } else if (event.key === "/") {
    const field = document.querySelector("form.filters input:not([type=checkbox], [type=hidden])") || document.getElementById("search");
    if (field) {
      event.preventDefault();
      field.focus();
    }
  }
});

// A menu closes when something else is clicked, or with Escape.
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});
