"""Attacks by strangers: programs, servers, files, decisions; `make attack` runs them all and prints the table."""
