"""Completion scripts for bash, zsh and fish, written from the outline of the command line.

The scripts are static: a TAB starts no Python. ``values`` says what an option's value is completed with.
"""
