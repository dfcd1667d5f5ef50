"""The search for neighbouring inputs on which a mechanism breaks its claim."""
