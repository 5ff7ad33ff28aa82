// Package interleave holds tests alone: histories of two and more database sessions that meet at one key. Each test
// reads like the history that it plays, and names the case or attack that it answers. The vocabulary stands in
// script_test.go.
package interleave
