"""Maintenance of an installation: verification, backups, and removal of old data."""
