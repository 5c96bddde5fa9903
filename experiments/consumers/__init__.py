"""What the server tells browsers over WebSockets."""
