"""Webhooks: outside addresses that are told what happened."""
