"""Reference pages of the documentation, made from the code.

`python -m tests.docs.generate` writes them; `make docs` does so before it builds the site, and
test_reference.py fails when a page differs from what the code says.
"""
