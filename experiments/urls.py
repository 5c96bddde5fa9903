"""Addresses of the app."""
from django.urls import path
urlpatterns: list = []
websocket_urlpatterns: list = []
