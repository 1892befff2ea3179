"""The commands, one a module: its options, and what it prints. Heavy imports stay inside the functions."""
