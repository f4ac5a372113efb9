"""Line searches along a direction, and the rules for their first trial step."""
