"""The sandbox: untrusted Python programs in a contained child process."""
