"""toybox-net and toybox-eyes: shapes, training, measurement, sight."""
