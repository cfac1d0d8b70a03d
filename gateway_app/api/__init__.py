"""The control API, `/v1`: one file a resource; who asks, pages and errors are settled once."""
