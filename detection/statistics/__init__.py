"""Arithmetic of detection."""
