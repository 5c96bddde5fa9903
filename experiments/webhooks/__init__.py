"""Webhooks: report events to external addresses."""
