"""Pictures made by the server as SVG: no script, no inline style, colours from the style sheet."""
