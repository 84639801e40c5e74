"use strict";
// Django's fields that complete what is typed stand apart from their label: they get its words.
function nameFields() {
  for (const field of document.querySelectorAll("select.admin-autocomplete[id]")) {
    const label = document.querySelector(`label[for="${CSS.escape(field.id)}"]`);
    const words = label ? label.textContent.trim().replace(/:$/, "") : field.getAttribute("aria-label");
    for (const part of field.parentElement.querySelectorAll(".select2-selection__rendered")) {
      if (words) part.setAttribute("aria-label", words);
    }
  }
}
// Behind the handler that makes those fields, which stands in the same line of jQuery.
if (window.django && window.django.jQuery) window.django.jQuery(nameFields);
document.addEventListener("formset:added", () => setTimeout(nameFields));
