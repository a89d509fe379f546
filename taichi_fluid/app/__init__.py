"""The command line, and what it says of this machine."""
