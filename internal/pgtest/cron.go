package pgtest

import "github.com/pgidem/pgidem/internal/pgserver"

// Cron lets pg_cron start with a server and live in its database postgres; create extension pg_cron is up to the test. The
// jobs run in background workers, which need no password.
var Cron = pgserver.Options{Settings: map[string]string{
	"shared_preload_libraries": "pg_cron", "cron.database_name": "postgres", "max_worker_processes": "20", "cron.use_background_workers": "on",
}}
