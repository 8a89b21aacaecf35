"""Pictures of splits as SVG: of plans, and of splits that are refused.

`layout` decides what a picture shows; the drawing in a terminal (`tensorsplit.pages`) uses it too.
"""
