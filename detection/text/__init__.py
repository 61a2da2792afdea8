"""Texts and what is done to them."""
