"""Statistics over per-item figures: metrics, intervals, tests, signatures. No torch here."""
