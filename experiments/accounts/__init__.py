"""How people come in, stay and leave: sessions, throttling, invitations, single sign-on, roles."""
