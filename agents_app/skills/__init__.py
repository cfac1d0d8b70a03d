"""Agents as files: parse is pure, discover reads the disk; rows are the business of sync."""
