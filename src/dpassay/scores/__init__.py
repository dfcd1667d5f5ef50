"""The privacy loss ℓ = log p/q, estimated."""
