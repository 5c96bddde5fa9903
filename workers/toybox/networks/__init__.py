"""toybox-net and toybox-eyes: shapes, training, measurement, detection."""
