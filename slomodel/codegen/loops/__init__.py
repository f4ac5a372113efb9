"""Loop nests between the schedule and the text of a C-like target."""
