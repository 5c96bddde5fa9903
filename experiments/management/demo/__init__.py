"""Fill a fresh installation for `manage.py demo`: a small team's week on toybox."""
