"""Zlib: the mean log-probability, weighed against how compressible the text is without any model.

Carlini et al. 2021, "Extracting Training Data from Large Language Models" (arXiv:2012.07805), section 5.2: a repetitive
text is probable under every model, and also short once compressed.
"""

from __future__ import annotations

import zlib

from detection.method import Part, TableDetector, mean


class ZlibRatio(TableDetector):
    """Mean l_t divided by the length in bytes of the zlib-compressed UTF-8 text (level 6); at most 0."""

    name = "zlib"
    version = 1
    needs = ("log_probabilities",)
    paper = "Carlini et al. 2021, arXiv:2012.07805"

    def scores(self, part: Part) -> dict[str, float]:
        compressed = zlib.compress(part.text.encode("utf-8", "surrogatepass"), 6)
        return {"zlib": mean(part.logprobs) / len(compressed)}
