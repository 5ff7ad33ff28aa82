package main

import (
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

// healthcheckTimeout is below what container engines give a check by default, 30 seconds, so that the reason is told.
const healthcheckTimeout = 10 * time.Second

func newHealthcheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "healthcheck URL",
		Short: "Ask a URL whether it answers, for an image without a shell",
		Long: `Asks a URL once. Exit code 0 when it answers with a status of 2xx within 10 seconds,
else 1 and the reason on standard error. For the health check of a container whose
image holds nothing but this program.`,
		Example: `  pgidem healthcheck http://127.0.0.1:8080/readyz`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			request, err := http.NewRequestWithContext(cmd.Context(), http.MethodGet, args[0], nil)
			if err != nil {
				return usageError{err}
			}
			response, err := (&http.Client{Timeout: healthcheckTimeout}).Do(request)
			if err != nil {
				return err
			}
			defer response.Body.Close()
			if response.StatusCode/100 != 2 {
				return fmt.Errorf("%s answers %s", request.URL.Redacted(), response.Status)
			}
			return nil
		},
	}
}
