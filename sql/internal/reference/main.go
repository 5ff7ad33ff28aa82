// Command reference writes docs/sql-reference.md: every public function, type, table and setting, as a database says
// them in which pgidem is installed. What the page tells of a function is its COMMENT, in the form that parseComment
// describes; order and headings are those of install.sql.
//
// The server is the one of libpq's variables, and the role may create databases:
//
//	go run ./internal/pgserver/withpg go run ./sql/internal/reference
//
// With -check it writes nothing and fails when the file is not what the database says.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"

	"github.com/jackc/pgx/v5"
)

func main() {
	file := flag.String("file", "docs/sql-reference.md", "the page")
	check := flag.Bool("check", false, "write nothing, fail when the page is out of date")
	flag.Parse()
	if err := run(context.Background(), *file, *check); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, file string, check bool) error {
	var page []byte
	err := withDatabase(ctx, func(conn *pgx.Conn) (err error) {
		page, err = build(ctx, conn)
		return err
	})
	if err != nil {
		return err
	}
	return put(file, page, check)
}

// build returns the page for the database of conn.
func build(ctx context.Context, conn *pgx.Conn) ([]byte, error) {
	r, err := read(ctx, conn)
	if err != nil {
		return nil, err
	}
	return render(r), nil
}

// put writes the page, or with check only compares it.
func put(file string, page []byte, check bool) error {
	got, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && bytes.Equal(got, page) {
		return nil
	}
	if check {
		return fmt.Errorf("%s is not what the functions, tables and comments say: run make reference", file)
	}
	return os.WriteFile(file, page, 0o644)
}
