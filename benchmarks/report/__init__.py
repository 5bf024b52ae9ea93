"""Figures as tables."""
