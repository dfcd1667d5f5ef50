"""What we may run: mechanisms, their neighbouring inputs, and the zoo."""
