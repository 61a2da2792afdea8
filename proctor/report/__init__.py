"""Reports: read run folders only, write summary.json, a terminal table and one self-contained page."""
