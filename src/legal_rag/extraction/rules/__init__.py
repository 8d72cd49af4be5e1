"""Entities by rules: parties, counsel, dates, sums, cited law; no model needed."""
