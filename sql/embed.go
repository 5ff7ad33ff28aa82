// Package sql carries the SQL of pgidem inside a Go program: the numbered migrations, the function sources, the
// psql scripts that install and remove everything.
package sql

import (
	"embed"
	"regexp"
)

// Files holds migrations/*.sql, functions/**/*.sql, install.sql and uninstall.sql under these names. The migrations
// alone are complete: the newest *_functions.sql is generated from the function sources. (Without all: embed leaves out
// names that begin with an underscore.) catalog.sum has the sum of each object that they make, written by `make reference`.
//
//go:generate go run ./internal/snapshot
//go:embed migrations/*.sql all:functions install.sql uninstall.sql catalog.sum
var Files embed.FS

// Version returns the release that the embedded SQL belongs to, such as 0.1.0: what pgidem.version() says in a database
// where it is installed.
func Version() string {
	source, err := Files.ReadFile("functions/operations/version.sql")
	if err != nil {
		panic(err) // embedded: cannot fail in a program that was built
	}
	match := regexp.MustCompile(`return '([^']+)'`).FindSubmatch(source)
	if match == nil {
		panic("functions/operations/version.sql does not return a literal")
	}
	return string(match[1])
}
