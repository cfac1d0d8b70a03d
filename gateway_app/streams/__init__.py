"""Live streams (Server-Sent Events): notifications, and what a run prints."""
