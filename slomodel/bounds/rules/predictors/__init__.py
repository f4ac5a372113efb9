"""The rule of linear predictors, for rows that are dense arrays and for rows of few entries."""
