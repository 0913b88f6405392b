"""Reports: rebuilt from results, without torch."""
