"""What needs Django: each call runs in a process of its own with one stack's settings."""
