"""What reports and pictures are made of, and how they are written: HTML and SVG."""
