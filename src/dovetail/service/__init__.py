"""The service: one process that serves a session over HTTP."""
