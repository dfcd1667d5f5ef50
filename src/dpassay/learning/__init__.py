"""What is chosen on training draws: the ranking of the outputs, the event, the variational function."""
