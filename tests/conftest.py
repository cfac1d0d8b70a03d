"""What every test may ask for; the parts themselves live in tests/parts."""

pytest_plugins = ["tests.parts.fixtures"]
