package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgidem/pgidem/goshell/migrate"
)

// withDatabase calls use with a connection to a new database in which pgidem is installed, and drops the database.
func withDatabase(ctx context.Context, use func(*pgx.Conn) error) (result error) {
	admin, err := pgx.Connect(ctx, "") // libpq's variables
	if err != nil {
		return fmt.Errorf("no server, make reference starts one: %w", err)
	}
	defer admin.Close(ctx)
	name := fmt.Sprintf("pgidem_reference_%d", os.Getpid())
	if _, err := admin.Exec(ctx, "create database "+name+" template template0"); err != nil {
		return err
	}
	defer func() {
		_, err := admin.Exec(ctx, "drop database "+name+" with (force)")
		result = errors.Join(result, err)
	}()

	config, err := pgxpool.ParseConfig("")
	if err != nil {
		return err
	}
	config.ConnConfig.Database = name
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := migrate.Up(ctx, pool); err != nil {
		return err
	}
	return pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error { return use(c.Conn()) })
}
