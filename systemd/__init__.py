"""Unit files for running memoryd as a systemd user service."""
