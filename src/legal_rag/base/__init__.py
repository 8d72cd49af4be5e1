"""What every room stands on: files, connections, pages, text, one deadline of any work."""
