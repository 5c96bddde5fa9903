"""How people join, sign in and leave: sessions, throttling, invitations, single sign-on, roles."""
