"""What is chosen on training draws: the score of the outputs, the event, the variational function."""
