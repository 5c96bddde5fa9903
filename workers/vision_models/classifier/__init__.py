"""The plug-in "classifier:": classifiers that were trained here."""
