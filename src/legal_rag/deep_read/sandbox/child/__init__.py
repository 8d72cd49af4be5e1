"""What runs in the sandbox's child process: it stands alone and imports the standard library only."""
