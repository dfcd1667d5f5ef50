"""What we saw: outputs in canonical form, drawn reproducibly, dealt out once."""
