"""What pyzorder.plot and pyzorder.report draw with: scales, drawings of files, colours."""
