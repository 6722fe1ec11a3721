"""The colors of pictures, and CSS variables that replace them in dark mode."""

from __future__ import annotations

INK = "#1b2430"
GRID = "#c3ccd6"
PAPER = "#ffffff"
FILE, FILE_EDGE = "#c9d5e2", "#6b7f95"
# The orange of opened files and the blue of boxes are from the palette by Okabe and Ito, which was
# designed for color-blind readers.
OPENED, OPENED_EDGE = "#e69f00", "#8a5a00"
BOX = "#0072b2"

VARIABLES = {
    INK: "--ink",
    GRID: "--grid",
    PAPER: "--paper",
    FILE: "--file",
    FILE_EDGE: "--file-edge",
    OPENED: "--opened",
    OPENED_EDGE: "--opened-edge",
    BOX: "--box",
}

#: Replacements for these colors in dark mode.
DARK = {
    INK: "#e4eaf1",
    GRID: "#3b4754",
    PAPER: "transparent",
    FILE: "#33475c",
    FILE_EDGE: "#8aa1b8",
    OPENED_EDGE: "#ffd98a",
    BOX: "#8fd3ff",
}
