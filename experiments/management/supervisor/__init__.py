"""What `manage.py up` is made of: it keeps the parts of one installation alive on one machine."""
