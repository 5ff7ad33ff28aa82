// Package sql carries the SQL of pgidem inside a Go program: the numbered migrations, the function sources, and the
// psql scripts that install and remove everything.
package sql

import "embed"

// Files holds migrations/*.sql, functions/**/*.sql, install.sql and uninstall.sql under these names. The migrations
// alone are complete: the newest *_functions.sql is generated from the function sources.
//
//go:generate go run ./internal/snapshot
//go:embed migrations/*.sql functions install.sql uninstall.sql
var Files embed.FS
