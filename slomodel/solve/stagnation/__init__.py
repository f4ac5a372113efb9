"""Why steps gain nothing: the resolution of f, poor scaling, saddles, unbounded objectives."""
