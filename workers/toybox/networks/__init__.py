"""toybox-net, toybox-eyes and toybox-describer: shapes, training, measurement, detection."""
