"""Formats values for people, renders HTML, and parses what people write."""
