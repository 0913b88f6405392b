"""The one training loop: resume, several processes, schedules, partial training."""
