"""Pictures and numbers on their way to files: written under a temporary name, then renamed."""
