"""English, the only language of the pages."""
