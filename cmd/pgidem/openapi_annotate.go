package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/pgidem/pgidem/goshell/openapi"
)

func newOpenAPIAnnotateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "annotate FILE",
		Short: "Document the header on every keyed operation of a description",
		Long: `Adds to an OpenAPI description what its keyed operations lack: the header
Idempotency-Key, the replay header on successes, and the responses 400, 409 and 422.
It prints the result, or with --diff the difference, or writes the file with --write.

It only inserts text: comments, order, anchors and style stay, and a second run
changes nothing. A description with violations that no addition mends is refused, and
they are printed. The result passes "pgidem openapi check" with the same flags.

` + whichOperations,
		Example: `  pgidem openapi annotate openapi.yaml --diff
  pgidem openapi annotate openapi.yaml --write
  pgidem openapi annotate openapi.yaml --write --contract public --prefix /api/v1`,
		Args: cobra.ExactArgs(1),
	}
	options := addOpenAPIFlags(cmd)
	write := cmd.Flags().Bool("write", false, "write the file")
	asDiff := cmd.Flags().Bool("diff", false, "print the difference, as diff -u does")
	cmd.MarkFlagsMutuallyExclusive("write", "diff")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o, err := options()
		if err != nil {
			return err
		}
		file := args[0]
		before, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		description, err := openapi.Load(file, o)
		if err != nil {
			return err
		}
		after, err := description.Annotate()
		if violations, ok := errors.AsType[openapi.Violations](err); ok {
			for _, v := range violations {
				if err := printf(cmd, "%s", visible(v.String())); err != nil {
					return err
				}
			}
			return fmt.Errorf("nothing was written, no addition mends these violations: %d", len(violations))
		}
		switch {
		case err != nil:
			return err
		case *write && !bytes.Equal(before, after):
			return replaceFile(file, after)
		case *write:
			return nil
		case *asDiff:
			after = diff.Diff(file, before, file, after)
		}
		_, err = cmd.OutOrStdout().Write(after)
		return err
	}
	return cmd
}

// replaceFile writes a file whole or not at all, and keeps its rights. A link stays one.
func replaceFile(name string, text []byte) error {
	name, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(name), ".pgidem-*")
	if err != nil {
		return err
	}
	_, err = next.Write(text)
	if err := errors.Join(err, next.Chmod(info.Mode().Perm()), next.Sync(), next.Close()); err != nil {
		return errors.Join(err, os.Remove(next.Name()))
	}
	return os.Rename(next.Name(), name)
}
