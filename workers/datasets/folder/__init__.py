"""The plug-ins "folder:" and "links:": any folder of images."""
