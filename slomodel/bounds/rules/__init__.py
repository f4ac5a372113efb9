"""Rules, one principle per file: `(setting, radius) -> Candidate` bounds both constants."""
