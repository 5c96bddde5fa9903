"""The parts of `manage.py up`: keep the processes of one installation alive on one machine."""
