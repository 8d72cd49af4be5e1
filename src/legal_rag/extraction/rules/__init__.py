"""Rule-based entities: parties, counsel, dates, sums, cited law; needs no model."""
