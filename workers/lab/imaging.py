"""The one home of image conversion and masks. Knows no model, no tool and no storage.

Images are `PIL.Image.Image`, mode RGB, at most `MAX_PIXELS` pixels. Activation maps are float arrays (height, width).
"""
