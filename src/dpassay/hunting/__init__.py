"""The search for inputs on which a mechanism breaks: what to try, what it teaches, how to shrink it."""
