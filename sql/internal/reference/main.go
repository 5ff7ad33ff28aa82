// Command reference writes docs/sql-reference.md: every public function, type, table and setting, as a database says
// them in which pgidem is installed; and sql/catalog.sum, by which a program tells whether a database is as it installs it. What the page tells of a function is its COMMENT, in the form that parseComment
// describes; order and headings are those of install.sql.
//
// The server is the one of libpq's variables, and the role may create databases:
//
//	go run ./internal/pgserver/withpg go run ./sql/internal/reference
//
// With -check it writes nothing and fails when a file is not what the database says.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/pgidem/pgidem/internal/catalog"
)

func main() {
	file := flag.String("file", "docs/sql-reference.md", "the page")
	sums := flag.String("sums", "sql/catalog.sum", "the sums")
	check := flag.Bool("check", false, "write nothing, fail when a file is out of date")
	flag.Parse()
	if err := run(context.Background(), *file, *sums, *check); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, file, sumsFile string, check bool) error {
	var page, sums []byte
	err := withDatabase(ctx, func(conn *pgx.Conn) (err error) {
		if page, err = build(ctx, conn); err != nil {
			return err
		}
		sums, err = sumsOf(ctx, conn)
		return err
	})
	if err != nil {
		return err
	}
	return errors.Join(put(file, page, check), put(sumsFile, sums, check))
}

// sumsOf returns a line for each object of the database of conn: its sum and its name.
func sumsOf(ctx context.Context, conn *pgx.Conn) ([]byte, error) {
	sums, err := catalog.Sums(ctx, conn)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	for _, object := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(&text, "%s  %s\n", sums[object], object)
	}
	return text.Bytes(), nil
}

// build returns the page for the database of conn.
func build(ctx context.Context, conn *pgx.Conn) ([]byte, error) {
	r, err := read(ctx, conn)
	if err != nil {
		return nil, err
	}
	return render(r), nil
}

// put writes a file, or with check only compares it.
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
