"""How Django writes times, by language: FORMAT_MODULE_PATH."""
