"""What a protocol shows of itself: tables, plates and transcript blocks."""
