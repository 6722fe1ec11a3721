"""Draws the pictures of pyzorder.plot and pyzorder.report."""
