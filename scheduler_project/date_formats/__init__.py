"""How dates and times are written on pages; the setting FORMAT_MODULE_PATH names this package."""
