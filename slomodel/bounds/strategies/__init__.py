"""One way a file to bound both constants over a ball: `(setting, radius) -> Candidate | None`."""
