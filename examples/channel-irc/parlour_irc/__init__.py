"""An IRC channel for Parlour, as an installed plug-in."""
