// Package runbook has the tests that do what docs/runbook.md says, by its very commands, on servers with an archive and a
// standby, and check what it says about keys.
package runbook
