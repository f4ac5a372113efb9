"""One principle a file that bounds both constants over a ball: `(setting, radius) -> Candidate`."""
