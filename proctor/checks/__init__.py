"""What can be found wrong before anything runs, and what it will cost."""
