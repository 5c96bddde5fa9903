"""What `manage.py demo` fills a fresh installation with: a small team's week on toybox."""
