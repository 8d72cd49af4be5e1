"""Extraction by rules: patterns of French legal usage, no model."""
