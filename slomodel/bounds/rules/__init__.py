"""Rules, one principle per file: `(setting, radius) -> Enclosure` of the derivatives."""
