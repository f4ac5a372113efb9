"""Line searches along a direction, and rules for their first trial step."""
