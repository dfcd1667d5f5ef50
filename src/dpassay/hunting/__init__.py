"""The search for inputs on which a mechanism breaks: what to try, how to learn from it, how to shrink it."""
