// Package examples has the tests of the examples for other languages: each program runs against a real server, and what it
// shows and leaves in the database is what it says. What is missing on this machine fails them; scripts/setup installs it.
package examples
