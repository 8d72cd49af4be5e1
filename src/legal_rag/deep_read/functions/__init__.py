"""The functions that programs of a deep read may call."""
