"""Tools for those who change Parlour. No product code."""
