"""The plug-in "classifier:": classifiers trained on this installation."""
