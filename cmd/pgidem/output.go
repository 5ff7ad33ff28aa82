package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pgidem/pgidem/internal/present"
)

// addJSONFlag gives a command the flag --json.
func addJSONFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("json", false, "print JSON, for scripts")
}

// printJSON writes one JSON document to standard output.
func printJSON(cmd *cobra.Command, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if err := printf(cmd, "%s", visible(strings.TrimSuffix(line, "\n"))); err != nil {
			return err
		}
	}
	return nil
}

// printJSONLine writes one JSON document, on one line, to standard output: for commands that print one after the other.
func printJSONLine(cmd *cobra.Command, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return printf(cmd, "%s", visible(string(text)))
}

// visible escapes what could steer a terminal, the way that JSON does: servers, clients and users put text into results and
// errors. JSON stays the same document.
func visible(text string) string { return present.Visible(text) }

// printf writes a line of the result to standard output.
func printf(cmd *cobra.Command, format string, args ...any) error {
	_, err := fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...)
	return err
}

// progress returns a logger for people who watch standard error: no time, no level.
func progress(cmd *cobra.Command) *slog.Logger {
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
				return slog.Attr{}
			}
			return a
		},
	}))
}
